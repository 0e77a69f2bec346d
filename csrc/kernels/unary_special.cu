// Gamma functions of one operand, and entropy. Called by csrc/aten/unary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/special.h"

#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(lgamma, Floats, return math::lgamma(x);)
MB_UNARY(digamma, Floats, return T(digamma_of(double(x)));)
MB_UNARY(trigamma, Floats, return T(trigamma_of(double(x)));)

MB_UNARY(special_entr, Floats, {
  const T information = -x * math::log(x);
  return x != x || x > T(0) ? information : x == T(0) ? T(0) : -std::numeric_limits<T>::infinity();
})

// n-th derivative of digamma, for n > 1.
template <class T>
struct Polygamma {
  double n, factor;  // (-1)^(n + 1) n!
  MB_DEVICE T operator()(T x) const { return T(factor * zeta_of(n + 1, double(x))); }
};

}  // namespace

MB_DEFINE_KERNEL(polygamma, (Stream stream, const Operands<2>& o, int64_t n)) {
  visit_compute<Floats>(o, "polygamma", [&](auto type) {
    using T = typename decltype(type)::type;
    if (n == 0) return unary<T>(stream, o, digamma_formula{});
    if (n == 1) return unary<T>(stream, o, trigamma_formula{});
    unary<T>(stream, o, Polygamma<T>{double(n), (n % 2 ? 1.0 : -1.0) * std::tgamma(double(n) + 1)});
  });
}

}  // namespace mybackend::kernels
