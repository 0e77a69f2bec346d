// Rounding of one operand, and its split into mantissa and exponent. Called by csrc/aten/unary.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(ceil, Floats, return math::ceil(x);)
MB_UNARY(floor, Floats, return math::floor(x);)
MB_UNARY(round, Floats, return math::rint(x);)
MB_UNARY(trunc, Floats, return math::trunc(x);)
MB_UNARY(frac, Floats, return x - math::trunc(x);)

template <class T>
struct RoundUp {
  T scale;  // 10^decimals
  MB_DEVICE T operator()(T x) const { return math::rint(x * scale) / scale; }
};

template <class T>
struct RoundDown {
  T scale;  // 10^-decimals
  MB_DEVICE T operator()(T x) const { return math::rint(x / scale) * scale; }
};

MB_UNARY(frexp_mantissa, Floats, {
  int exponent;
  return math::frexp(x, &exponent);
})

MB_UNARY(frexp_exponent, Floats, {
  int exponent;
  math::frexp(x, &exponent);
  const bool finite = x - x == 0;
  return int32_t(finite ? exponent : 0);
})

}  // namespace

MB_DEFINE_KERNEL(round_decimals, (Stream stream, const Operands<2>& o, int64_t decimals)) {
  visit_compute<Floats>(o, "round", [&](auto type) {
    using T = typename decltype(type)::type;
    const T scale = T(std::pow(10.0, double(decimals < 0 ? -decimals : decimals)));
    if (decimals < 0) return unary<T>(stream, o, RoundDown<T>{scale});
    unary<T>(stream, o, RoundUp<T>{scale});
  });
}

}  // namespace mybackend::kernels
