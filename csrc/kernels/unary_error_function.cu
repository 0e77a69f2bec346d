// The error function, its complement and their inverses. Called by csrc/aten/unary.cpp. Spec:
// test/ops/test_pointwise.py.
#include "csrc/kernels/error_function.h"
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(erf, Floats, return error_function(x);)
MB_UNARY(erfc, Floats, return math::erfc(x);)
MB_UNARY(erfinv, Floats, return inverse_error_function(x);)
MB_UNARY(special_erfcx, Floats, return scaled_complement(x);)
MB_UNARY(special_ndtri, Floats, {
  const T quantile = T(-kSqrtTwo) * inverse_complement(T(2) * (x < T(0.5) ? x : T(1) - x));
  return x >= T(0) && x <= T(1) ? (x < T(0.5) ? quantile : -quantile) : std::numeric_limits<T>::quiet_NaN();
})
MB_UNARY(special_log_ndtr, Floats, {
  const T z = x * T(kSqrtHalf);
  return x < T(-1) ? math::log(scaled_complement(-z) / T(2)) - z * z : math::log1p(-math::erfc(z) / T(2));
})

}  // namespace
}  // namespace mybackend::kernels
