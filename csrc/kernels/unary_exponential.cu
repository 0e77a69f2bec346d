// Exponentials, logarithms and hyperbolic functions of one operand. Called by csrc/aten/unary.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(exp, FloatsAndComplexes, return math::exp(x);)
MB_UNARY(exp2, FloatsAndComplexes, return math::exp2(x);)
MB_UNARY(expm1, FloatsAndComplexes, return math::expm1(x);)
MB_UNARY(log, FloatsAndComplexes, return math::log(x);)
MB_UNARY(log2, FloatsAndComplexes, return math::log2(x);)
MB_UNARY(log10, FloatsAndComplexes, return math::log10(x);)
MB_UNARY(log1p, FloatsAndComplexes, return math::log1p(x);)
MB_UNARY(sigmoid, FloatsAndComplexes, return T(1) / (T(1) + math::exp(-x));)
MB_UNARY(tanh, FloatsAndComplexes, return math::tanh(x);)
MB_UNARY(sinh, FloatsAndComplexes, return math::sinh(x);)
MB_UNARY(cosh, FloatsAndComplexes, return math::cosh(x);)

template <class T>
struct Logit {
  MB_DEVICE T operator()(T x) const { return math::log(x / (T(1) - x)); }
};

template <class T>
struct LogitClamped {
  T low, high;
  MB_DEVICE T operator()(T x) const {
    const T z = x < low ? low : x > high ? high : x;
    return math::log(z / (T(1) - z));
  }
};

}  // namespace

MB_DEFINE_KERNEL(logit, (Stream stream, const Operands<2>& o, double eps)) {
  visit_compute<Floats>(o, "logit", [&](auto type) {
    using T = typename decltype(type)::type;
    if (eps < 0) return unary<T>(stream, o, Logit<T>{});
    unary<T>(stream, o, LogitClamped<T>{T(eps), T(1) - T(eps)});
  });
}

}  // namespace mybackend::kernels
