// Stands for csrc/device/numeric.h where generated code includes headers of csrc/kernels: the same words, without torch's
// number types.
#pragma once

#include "../../maths.h"

#if defined(__CUDACC_RTC__)
#include <cuda/std/limits>
namespace std {
using cuda::std::numeric_limits;
}
#else
#include <cstring>
#include <limits>
#endif

#define MB_DEVICE MB_FN

typedef mb_u32 mb_uint32;
typedef int mb_int32;
using uint32_t = mb_uint32;
using int32_t = mb_int32;

namespace mybackend::math {

#define MB_SHARED_1(name)           \
  MB_DEVICE float name(float x) {   \
    return mb_##name(x);            \
  }                                 \
  MB_DEVICE double name(double x) { \
    return mb_##name(x);            \
  }
#define MB_SHARED_2(name)                     \
  MB_DEVICE float name(float x, float y) {    \
    return mb_##name(x, y);                   \
  }                                           \
  MB_DEVICE double name(double x, double y) { \
    return mb_##name(x, y);                   \
  }
MB_SHARED_1(sin)
MB_SHARED_1(cos)
MB_SHARED_1(tan)
MB_SHARED_1(exp)
MB_SHARED_1(expm1)
MB_SHARED_1(log)
MB_SHARED_1(log1p)
MB_SHARED_1(erf)
MB_SHARED_1(erfc)
MB_SHARED_1(sqrt)
MB_SHARED_1(floor)
MB_SHARED_1(ceil)
MB_SHARED_1(trunc)
MB_SHARED_1(rint)
MB_SHARED_1(fabs)
MB_SHARED_1(lgamma)
MB_SHARED_1(cosh)
MB_SHARED_1(sinh)
MB_SHARED_2(pow)
MB_SHARED_2(copysign)
#undef MB_SHARED_1
#undef MB_SHARED_2

}  // namespace mybackend::math
