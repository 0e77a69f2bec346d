// Trigonometric functions of one operand and their inverses. Called by csrc/aten/unary.cpp. Spec:
// test/ops/test_pointwise.py.
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(sin, FloatsAndComplexes, return math::sin(x);)
MB_UNARY(cos, FloatsAndComplexes, return math::cos(x);)
MB_UNARY(tan, FloatsAndComplexes, return math::tan(x);)
MB_UNARY(asin, FloatsAndComplexes, return math::asin(x);)
MB_UNARY(acos, FloatsAndComplexes, return math::acos(x);)
MB_UNARY(atan, FloatsAndComplexes, return math::atan(x);)
MB_UNARY(asinh, FloatsAndComplexes, return math::asinh(x);)
MB_UNARY(acosh, FloatsAndComplexes, return math::acosh(x);)
MB_UNARY(atanh, FloatsAndComplexes, return math::atanh(x);)

MB_UNARY(sinc, FloatsAndComplexes, {
  const T angle = Real<T>(3.14159265358979323846) * x;
  return x == T(0) ? T(1) : T(math::sin(angle) / angle);
})

}  // namespace
}  // namespace mybackend::kernels
