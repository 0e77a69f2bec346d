// Functions of one operand over lists of floating-point tensors. Called by csrc/aten/foreach.cpp; other dtypes go
// tensor by tensor there. Spec: test/ops/test_foreach.py.
#include "csrc/kernels/foreach.h"
#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

template <Unary op, class T>
MB_DEVICE T value_of(T x) {
  if constexpr (op == Unary::Abs) return math::fabs(x);
  if constexpr (op == Unary::Neg) return -x;
  if constexpr (op == Unary::Sign) return T(int(T(0) < x) - int(x < T(0)));
  if constexpr (op == Unary::Sqrt) return math::sqrt(x);
  if constexpr (op == Unary::Rsqrt) return math::rsqrt(x);
  if constexpr (op == Unary::Reciprocal) return T(1) / x;
  if constexpr (op == Unary::Exp) return math::exp(x);
  if constexpr (op == Unary::Expm1) return math::expm1(x);
  if constexpr (op == Unary::Log) return math::log(x);
  if constexpr (op == Unary::Log10) return math::log10(x);
  if constexpr (op == Unary::Log1p) return math::log1p(x);
  if constexpr (op == Unary::Log2) return math::log2(x);
  if constexpr (op == Unary::Sigmoid) return T(1) / (T(1) + math::exp(-x));
  if constexpr (op == Unary::Tanh) return math::tanh(x);
  if constexpr (op == Unary::Sin) return math::sin(x);
  if constexpr (op == Unary::Cos) return math::cos(x);
  if constexpr (op == Unary::Tan) return math::tan(x);
  if constexpr (op == Unary::Asin) return math::asin(x);
  if constexpr (op == Unary::Acos) return math::acos(x);
  if constexpr (op == Unary::Atan) return math::atan(x);
  if constexpr (op == Unary::Sinh) return math::sinh(x);
  if constexpr (op == Unary::Cosh) return math::cosh(x);
  if constexpr (op == Unary::Erf) return math::erf(x);
  if constexpr (op == Unary::Erfc) return math::erfc(x);
  if constexpr (op == Unary::Lgamma) return math::lgamma(x);
  if constexpr (op == Unary::Ceil) return math::ceil(x);
  if constexpr (op == Unary::Floor) return math::floor(x);
  if constexpr (op == Unary::Round) return math::rint(x);
  if constexpr (op == Unary::Trunc) return math::trunc(x);
  if constexpr (op == Unary::Frac) return x - math::trunc(x);
}

template <Unary op, class T>
struct Function {
  MB_DEVICE void operator()(T (&v)[2]) const { v[0] = value_of<op>(v[1]); }
  MB_DEVICE void operator()(Block block, const Span<2>& span, NoExtra) const {
    device::each_in_span<0b10, 0b01, T>(block, span, *this);
  }
};

template <class T, int... op>
void choose(Stream stream, const TensorLists& lists, Unary wanted, std::integer_sequence<int, op...>) {
  ((wanted == Unary(op) ? multi_tensor<2>(stream, lists, kPointwiseChunk, Function<Unary(op), T>{}) : void()), ...);
}

}  // namespace

MB_DEFINE_KERNEL(foreach_unary, (Stream stream, const TensorLists& lists, Unary op)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "foreach_unary_op", [&](auto type) {
    using T = typename decltype(type)::type;
    choose<T>(stream, lists, op, std::make_integer_sequence<int, int(Unary::Frac) + 1>{});
  });
}

}  // namespace mybackend::kernels
