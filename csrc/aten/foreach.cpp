// Elementwise operations over lists of tensors. Upstream's rules decide between one launch and its slow functions,
// which also make the errors.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_abs_native.h>
#include <ATen/ops/_foreach_acos_native.h>
#include <ATen/ops/_foreach_add_native.h>
#include <ATen/ops/_foreach_asin_native.h>
#include <ATen/ops/_foreach_atan_native.h>
#include <ATen/ops/_foreach_ceil_native.h>
#include <ATen/ops/_foreach_clamp_max_native.h>
#include <ATen/ops/_foreach_clamp_min_native.h>
#include <ATen/ops/_foreach_cos_native.h>
#include <ATen/ops/_foreach_cosh_native.h>
#include <ATen/ops/_foreach_div_native.h>
#include <ATen/ops/_foreach_erf_native.h>
#include <ATen/ops/_foreach_erfc_native.h>
#include <ATen/ops/_foreach_exp_native.h>
#include <ATen/ops/_foreach_expm1_native.h>
#include <ATen/ops/_foreach_floor_native.h>
#include <ATen/ops/_foreach_frac_native.h>
#include <ATen/ops/_foreach_lgamma_native.h>
#include <ATen/ops/_foreach_log10_native.h>
#include <ATen/ops/_foreach_log1p_native.h>
#include <ATen/ops/_foreach_log2_native.h>
#include <ATen/ops/_foreach_log_native.h>
#include <ATen/ops/_foreach_mul_native.h>
#include <ATen/ops/_foreach_neg_native.h>
#include <ATen/ops/_foreach_pow_native.h>
#include <ATen/ops/_foreach_reciprocal_native.h>
#include <ATen/ops/_foreach_round_native.h>
#include <ATen/ops/_foreach_rsqrt_native.h>
#include <ATen/ops/_foreach_sigmoid_native.h>
#include <ATen/ops/_foreach_sign_native.h>
#include <ATen/ops/_foreach_sin_native.h>
#include <ATen/ops/_foreach_sinh_native.h>
#include <ATen/ops/_foreach_sqrt_native.h>
#include <ATen/ops/_foreach_sub_native.h>
#include <ATen/ops/_foreach_tan_native.h>
#include <ATen/ops/_foreach_tanh_native.h>
#include <ATen/ops/_foreach_trunc_native.h>

#include "csrc/aten/foreach.h"
#include "csrc/kernels/foreach.h"
#include "generated/foreach.h"

namespace mybackend::aten {

using at::ArrayRef;
using at::Scalar;
using at::Tensor;
using at::TensorList;
using at::native::check_foreach_api_restrictions;
using kernels::Binary;
using kernels::Number;
using kernels::Numbers;
using kernels::Unary;
using lists::Held;
using lists::in_place;
using lists::kComplex;
using lists::kInteger;
using lists::kReal;
using lists::Lists;
using lists::stream_of;
using lists::takes_fast_route;
using lists::to_new;
using lists::to_number;

namespace {

using Tensors = std::vector<Tensor>;

bool promotes(Binary op) {
  return op != Binary::Add && op != Binary::Sub && op != Binary::Mul;
}

unsigned kinds_of(Binary op) {
  switch (op) {
    case Binary::Add:
    case Binary::Sub:
    case Binary::Mul:
      return kReal | kInteger | kComplex;
    case Binary::Div:
      return kReal | kComplex;
    default:
      return kReal;
  }
}

bool fast(Unary, TensorList self) {
  return takes_fast_route({self}, {}, false, kReal);
}
bool fast(Binary op, TensorList self, ArrayRef<Scalar> scalars) {
  return takes_fast_route({self}, scalars, promotes(op), kinds_of(op));
}
bool fast(Binary op, TensorList self, TensorList other, ArrayRef<Scalar> alpha) {
  return takes_fast_route({self, other}, alpha, promotes(op), kinds_of(op));
}
bool fast(Binary op, TensorList self, const Tensor& other, ArrayRef<Scalar> alpha) {
  return fast(op, self, alpha) && self[0].scalar_type() == other.scalar_type() && other.dim() == 0 &&
         other.device() == self[0].device();
}
auto unary(Unary op, TensorList self) {
  return [=](TensorList out) { kernels::foreach_unary(stream_of(self), Lists({out, self}, 1), op); };
}
auto binary(Binary op, TensorList self, TensorList other, const Scalar& alpha) {
  return [=, number = to_number(alpha)](TensorList out) {
    kernels::foreach_binary_list(stream_of(self), Lists({out, self, other}, 1), op, number);
  };
}
auto binary(Binary op, TensorList self, ArrayRef<Scalar> scalars) {
  return [=](TensorList out) {
    kernels::foreach_binary_numbers(stream_of(self), Lists({out, self}, 1), op, Held(scalars));
  };
}
auto binary(Binary op, TensorList self, const Tensor& element, const Scalar& alpha) {
  return [=, &element, number = to_number(alpha)](TensorList out) {
    const Numbers numbers{nullptr, number, element.const_data_ptr()};
    kernels::foreach_binary_numbers(stream_of(self), Lists({out, self}, 1), op, numbers);
  };
}
void check_subtraction(Binary op, TensorList self, ArrayRef<Scalar> scalars) {
  if (op != Binary::Sub) return;
  for (size_t t = 0; t < self.size(); t++) at::native::sub_check(self[t], scalars[scalars.size() == 1 ? 0 : t]);
}

}  // namespace

#define MB_UNARY(name, op)                                                                                  \
  Tensors _foreach_##name(TensorList self) {                                                                \
    check_foreach_api_restrictions(self);                                                                   \
    return fast(op, self) ? to_new(self, unary(op, self)) : at::native::foreach_tensor_##name##_slow(self); \
  }                                                                                                         \
  void _foreach_##name##_(TensorList self) {                                                                \
    check_foreach_api_restrictions(self);                                                                   \
    fast(op, self) ? in_place(self, unary(op, self)) : at::native::foreach_tensor_##name##_slow_(self);     \
  }

MB_UNARY(abs, Unary::Abs)
MB_UNARY(acos, Unary::Acos)
MB_UNARY(asin, Unary::Asin)
MB_UNARY(atan, Unary::Atan)
MB_UNARY(ceil, Unary::Ceil)
MB_UNARY(cos, Unary::Cos)
MB_UNARY(cosh, Unary::Cosh)
MB_UNARY(erf, Unary::Erf)
MB_UNARY(erfc, Unary::Erfc)
MB_UNARY(exp, Unary::Exp)
MB_UNARY(expm1, Unary::Expm1)
MB_UNARY(floor, Unary::Floor)
MB_UNARY(frac, Unary::Frac)
MB_UNARY(lgamma, Unary::Lgamma)
MB_UNARY(log, Unary::Log)
MB_UNARY(log10, Unary::Log10)
MB_UNARY(log1p, Unary::Log1p)
MB_UNARY(log2, Unary::Log2)
MB_UNARY(neg, Unary::Neg)
MB_UNARY(reciprocal, Unary::Reciprocal)
MB_UNARY(round, Unary::Round)
MB_UNARY(rsqrt, Unary::Rsqrt)
MB_UNARY(sigmoid, Unary::Sigmoid)
MB_UNARY(sign, Unary::Sign)
MB_UNARY(sin, Unary::Sin)
MB_UNARY(sinh, Unary::Sinh)
MB_UNARY(sqrt, Unary::Sqrt)
MB_UNARY(tan, Unary::Tan)
MB_UNARY(tanh, Unary::Tanh)
MB_UNARY(trunc, Unary::Trunc)
#undef MB_UNARY

// `slow` is what upstream's slow functions are called after.
#define MB_BINARY_SCALARS(name, slow, op)                                                                       \
  Tensors _foreach_##name##_Scalar(TensorList self, const Scalar& scalar) {                                     \
    check_foreach_api_restrictions(self);                                                                       \
    check_subtraction(op, self.slice(0, 1), scalar);                                                            \
    return fast(op, self, scalar) ? to_new(self, binary(op, self, scalar))                                      \
                                  : at::native::foreach_tensor_##slow##_scalar_kernel_slow(self, scalar);       \
  }                                                                                                             \
  void _foreach_##name##__Scalar(TensorList self, const Scalar& scalar) {                                       \
    check_foreach_api_restrictions(self);                                                                       \
    check_subtraction(op, self.slice(0, 1), scalar);                                                            \
    fast(op, self, scalar) ? in_place(self, binary(op, self, scalar))                                           \
                           : at::native::foreach_tensor_##slow##_scalar_kernel_slow_(self, scalar);             \
  }                                                                                                             \
  Tensors _foreach_##name##_ScalarList(TensorList self, ArrayRef<Scalar> scalars) {                             \
    check_foreach_api_restrictions(self, scalars);                                                              \
    check_subtraction(op, self, scalars);                                                                       \
    return fast(op, self, scalars) ? to_new(self, binary(op, self, scalars))                                    \
                                   : at::native::foreach_tensor_##slow##_scalarlist_kernel_slow(self, scalars); \
  }                                                                                                             \
  void _foreach_##name##__ScalarList(TensorList self, ArrayRef<Scalar> scalars) {                               \
    check_foreach_api_restrictions(self, scalars);                                                              \
    check_subtraction(op, self, scalars);                                                                       \
    fast(op, self, scalars) ? in_place(self, binary(op, self, scalars))                                         \
                            : at::native::foreach_tensor_##slow##_scalarlist_kernel_slow_(self, scalars);       \
  }

#define MB_BINARY_LIST(name, slow, op)                                                                    \
  Tensors _foreach_##name##_List(TensorList self, TensorList other) {                                     \
    check_foreach_api_restrictions(self, other);                                                          \
    return fast(op, self, other, {}) ? to_new(self, binary(op, self, other, 1))                           \
                                     : at::native::foreach_tensor_##slow##_list_kernel_slow(self, other); \
  }                                                                                                       \
  void _foreach_##name##__List(TensorList self, TensorList other) {                                       \
    check_foreach_api_restrictions(self, other);                                                          \
    fast(op, self, other, {}) ? in_place(self, binary(op, self, other, 1))                                \
                              : at::native::foreach_tensor_##slow##_list_kernel_slow_(self, other);       \
  }

#define MB_BINARY_LIST_ALPHA(name, op)                                                                              \
  Tensors _foreach_##name##_List(TensorList self, TensorList other, const Scalar& alpha) {                          \
    check_foreach_api_restrictions(self, other);                                                                    \
    return fast(op, self, other, alpha) ? to_new(self, binary(op, self, other, alpha))                              \
                                        : at::native::foreach_tensor_##name##_list_kernel_slow(self, other, alpha); \
  }                                                                                                                 \
  void _foreach_##name##__List(TensorList self, TensorList other, const Scalar& alpha) {                            \
    check_foreach_api_restrictions(self, other);                                                                    \
    fast(op, self, other, alpha) ? in_place(self, binary(op, self, other, alpha))                                   \
                                 : at::native::foreach_tensor_##name##_list_kernel_slow_(self, other, alpha);       \
  }

#define MB_BINARY_ELEMENT(name, op)                                                                         \
  Tensors _foreach_##name##_Tensor(TensorList self, const Tensor& other) {                                  \
    if (other.is_cpu()) return _foreach_##name##_Scalar(self, other.item());                                \
    check_foreach_api_restrictions(self);                                                                   \
    return fast(op, self, other, {}) ? to_new(self, binary(op, self, other, 1))                             \
                                     : at::native::foreach_tensor_##name##_tensor_kernel_slow(self, other); \
  }                                                                                                         \
  void _foreach_##name##__Tensor(TensorList self, const Tensor& other) {                                    \
    if (other.is_cpu()) return _foreach_##name##__Scalar(self, other.item());                               \
    check_foreach_api_restrictions(self);                                                                   \
    fast(op, self, other, {}) ? in_place(self, binary(op, self, other, 1))                                  \
                              : at::native::foreach_tensor_##name##_tensor_kernel_slow_(self, other);       \
  }

MB_BINARY_SCALARS(add, add, Binary::Add)
MB_BINARY_LIST_ALPHA(add, Binary::Add)
MB_BINARY_SCALARS(sub, sub, Binary::Sub)
MB_BINARY_LIST_ALPHA(sub, Binary::Sub)
MB_BINARY_SCALARS(mul, mul, Binary::Mul)
MB_BINARY_LIST(mul, mul, Binary::Mul)
MB_BINARY_ELEMENT(mul, Binary::Mul)
MB_BINARY_SCALARS(div, div, Binary::Div)
MB_BINARY_LIST(div, div, Binary::Div)
MB_BINARY_ELEMENT(div, Binary::Div)
MB_BINARY_SCALARS(maximum, clamp_min, Binary::Maximum)
MB_BINARY_LIST(maximum, clamp_min, Binary::Maximum)
MB_BINARY_SCALARS(clamp_min, clamp_min, Binary::Maximum)
MB_BINARY_LIST(clamp_min, clamp_min, Binary::Maximum)
MB_BINARY_SCALARS(minimum, clamp_max, Binary::Minimum)
MB_BINARY_LIST(minimum, clamp_max, Binary::Minimum)
MB_BINARY_SCALARS(clamp_max, clamp_max, Binary::Minimum)
MB_BINARY_LIST(clamp_max, clamp_max, Binary::Minimum)
MB_BINARY_SCALARS(pow, pow, Binary::Pow)
MB_BINARY_LIST(pow, pow, Binary::Pow)
#undef MB_BINARY_SCALARS
#undef MB_BINARY_LIST
#undef MB_BINARY_LIST_ALPHA
#undef MB_BINARY_ELEMENT

Tensors _foreach_add_Tensor(TensorList self, const Tensor& other, const Scalar& alpha) {
  check_foreach_api_restrictions(self);
  return fast(Binary::Add, self, other, alpha) ? to_new(self, binary(Binary::Add, self, other, alpha))
                                               : at::native::foreach_tensor_add_tensor_kernel_slow(self, other, alpha);
}

void _foreach_add__Tensor(TensorList self, const Tensor& other, const Scalar& alpha) {
  check_foreach_api_restrictions(self);
  fast(Binary::Add, self, other, alpha) ? in_place(self, binary(Binary::Add, self, other, alpha))
                                        : at::native::foreach_tensor_add_tensor_kernel_slow_(self, other, alpha);
}

Tensors _foreach_pow_ScalarAndTensor(const Scalar& self, TensorList exponent) {
  check_foreach_api_restrictions(exponent);
  return fast(Binary::ReversePow, exponent, self) ? to_new(exponent, binary(Binary::ReversePow, exponent, self))
                                                  : at::native::foreach_scalar_pow_list_kernel_slow(self, exponent);
}

}  // namespace mybackend::aten
