// addcmul, addcdiv, lerp, copies and zeros over lists of tensors; the routes are those of foreach.cpp.
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_addcdiv_native.h>
#include <ATen/ops/_foreach_addcmul_native.h>
#include <ATen/ops/_foreach_copy_native.h>
#include <ATen/ops/_foreach_lerp_native.h>
#include <ATen/ops/_foreach_zero_native.h>

#include "csrc/aten/foreach.h"
#include "csrc/kernels/foreach.h"
#include "generated/foreach.h"

namespace mybackend::aten {

using at::ArrayRef;
using at::Scalar;
using at::Tensor;
using at::TensorList;
using at::native::check_foreach_api_restrictions;
using kernels::Ternary;
using lists::Held;
using lists::in_place;
using lists::kComplex;
using lists::kInteger;
using lists::kReal;
using lists::Lists;
using lists::stream_of;
using lists::takes_fast_route;
using lists::to_new;

namespace {

using Tensors = std::vector<Tensor>;

unsigned kinds_of(Ternary op) {
  return op == Ternary::Lerp ? kReal : kReal | kComplex;
}

bool fast(Ternary op, TensorList self, TensorList a, TensorList b, ArrayRef<Scalar> scalars) {
  return takes_fast_route({self, a, b}, scalars, true, kinds_of(op));
}

auto ternary(Ternary op, TensorList self, TensorList a, TensorList b, ArrayRef<Scalar> scalars) {
  return [=](TensorList out) {
    kernels::foreach_ternary_numbers(stream_of(self), Lists({out, self, a, b}, 1), op, Held(scalars));
  };
}

}  // namespace

#define MB_POINTWISE(name, op)                                                                                       \
  Tensors _foreach_##name##_Scalar(TensorList self, TensorList a, TensorList b, const Scalar& value) {               \
    check_foreach_api_restrictions(self, a, b);                                                                      \
    return fast(op, self, a, b, value) ? to_new(self, ternary(op, self, a, b, value))                                \
                                       : at::native::foreach_tensor_##name##_scalar_slow(self, a, b, value);         \
  }                                                                                                                  \
  void _foreach_##name##__Scalar(TensorList self, TensorList a, TensorList b, const Scalar& value) {                 \
    check_foreach_api_restrictions(self, a, b);                                                                      \
    fast(op, self, a, b, value) ? in_place(self, ternary(op, self, a, b, value))                                     \
                                : at::native::foreach_tensor_##name##_scalar_slow_(self, a, b, value);               \
  }                                                                                                                  \
  Tensors _foreach_##name##_ScalarList(TensorList self, TensorList a, TensorList b, ArrayRef<Scalar> scalars) {      \
    check_foreach_api_restrictions(self, a, b, scalars);                                                             \
    return fast(op, self, a, b, scalars) ? to_new(self, ternary(op, self, a, b, scalars))                            \
                                         : at::native::foreach_tensor_##name##_scalarlist_slow(self, a, b, scalars); \
  }                                                                                                                  \
  void _foreach_##name##__ScalarList(TensorList self, TensorList a, TensorList b, ArrayRef<Scalar> scalars) {        \
    check_foreach_api_restrictions(self, a, b, scalars);                                                             \
    fast(op, self, a, b, scalars) ? in_place(self, ternary(op, self, a, b, scalars))                                 \
                                  : at::native::foreach_tensor_##name##_scalarlist_slow_(self, a, b, scalars);       \
  }                                                                                                                  \
  Tensors _foreach_##name##_Tensor(TensorList self, TensorList a, TensorList b, const Tensor& scalars) {             \
    return _foreach_##name##_ScalarList(self, a, b,                                                                  \
                                        at::native::convert_tensor_to_scalar_list(scalars, int64_t(self.size())));   \
  }                                                                                                                  \
  void _foreach_##name##__Tensor(TensorList self, TensorList a, TensorList b, const Tensor& scalars) {               \
    _foreach_##name##__ScalarList(self, a, b,                                                                        \
                                  at::native::convert_tensor_to_scalar_list(scalars, int64_t(self.size())));         \
  }

MB_POINTWISE(addcmul, Ternary::Addcmul)
MB_POINTWISE(addcdiv, Ternary::Addcdiv)
#undef MB_POINTWISE

namespace {

auto lerp(TensorList self, TensorList end, ArrayRef<Scalar> weight) {
  return [=](TensorList out) {
    kernels::foreach_ternary_numbers(stream_of(self), Lists({out, self, end}, 1), Ternary::Lerp, Held(weight));
  };
}
auto lerp(TensorList self, TensorList end, TensorList weight) {
  return [=](TensorList out) { kernels::foreach_lerp_list(stream_of(self), Lists({out, self, end, weight}, 1)); };
}

bool lerps_fast(TensorList self, TensorList end, const Scalar& weight) {
  check_foreach_api_restrictions(self, end);
  return takes_fast_route({self, end}, weight, true, kReal);
}
bool lerps_fast(TensorList self, TensorList end, ArrayRef<Scalar> weight) {
  check_foreach_api_restrictions(self, end, weight);
  return takes_fast_route({self, end}, weight, true, kReal);
}
bool lerps_fast(TensorList self, TensorList end, TensorList weight) {
  check_foreach_api_restrictions(self, end, weight);
  return takes_fast_route({self, end, weight}, {}, true, kReal);
}

}  // namespace

#define MB_LERP(overload, type, slow)                                                            \
  Tensors _foreach_lerp_##overload(TensorList self, TensorList end, type weight) {               \
    return lerps_fast(self, end, weight) ? to_new(self, lerp(self, end, weight))                 \
                                         : at::native::foreach_tensor_##slow(self, end, weight); \
  }                                                                                              \
  void _foreach_lerp__##overload(TensorList self, TensorList end, type weight) {                 \
    lerps_fast(self, end, weight) ? in_place(self, lerp(self, end, weight))                      \
                                  : at::native::foreach_tensor_##slow##_(self, end, weight);     \
  }

MB_LERP(Scalar, const Scalar&, lerp_list_kernel_slow)
MB_LERP(ScalarList, ArrayRef<Scalar>, lerp_scalarlist_kernel_slow)
MB_LERP(List, TensorList, ternary_lerp_slow)
#undef MB_LERP

void _foreach_copy_(TensorList self, TensorList src, bool non_blocking) {
  check_foreach_api_restrictions(self, src);
  // Dtypes may differ between the lists, but not from real to complex or back.
  const auto dense_alike = [&] {
    if (!self[0].is_privateuseone() || self[0].is_complex() != src[0].is_complex()) return false;
    for (size_t t = 0; t < self.size(); t++)
      if (self[t].sizes() != src[t].sizes() || self[t].strides() != src[t].strides() ||
          self[t].scalar_type() != self[0].scalar_type() || src[t].scalar_type() != src[0].scalar_type() ||
          self[t].device() != self[0].device() || src[t].device() != self[0].device() ||
          !self[t].is_non_overlapping_and_dense() || self[t].is_conj() != src[t].is_conj() ||
          self[t].is_neg() != src[t].is_neg() || c10::isQIntType(self[t].scalar_type()) ||
          c10::isFloat8Type(self[t].scalar_type()) || c10::isFloat8Type(src[t].scalar_type()))
        return false;
    return true;
  };
  if (!dense_alike()) return at::native::foreach_tensor_copy_list_kernel_slow_(self, src, non_blocking);
  in_place(self, [&](TensorList out) { kernels::foreach_copy(stream_of(self), Lists({out, src}, 1)); });
}

void _foreach_zero_(TensorList self) {
  check_foreach_api_restrictions(self);
  if (!takes_fast_route({self}, {}, false, kReal | kInteger | kComplex))
    return at::native::foreach_tensor_zero_slow_(self);
  in_place(self, [&](TensorList out) { kernels::foreach_zero(stream_of(out), Lists({out}, 1)); });
}

}  // namespace mybackend::aten
