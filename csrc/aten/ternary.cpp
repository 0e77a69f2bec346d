// where, addcmul, addcdiv, lerp and the clamp family: our kernels behind upstream's stubs.
#include <ATen/native/Lerp.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/TensorCompare.h>

#include "csrc/aten/pointwise.h"
#include "csrc/kernels/ternary.h"

namespace mybackend::aten {
namespace {

void clamp_scalar(at::TensorIteratorBase& iter, const c10::Scalar& low, const c10::Scalar& high) {
  const Operands<2> o = operands_of<2>(iter);
  kernels::clamp_scalar(stream_of(iter), o, number_of(low, o.compute), number_of(high, o.compute));
}

void clamp_min_scalar(at::TensorIteratorBase& iter, c10::Scalar low) {
  run_with_scalar<2, kernels::clamp_min_scalar>(iter, low);
}

void clamp_max_scalar(at::TensorIteratorBase& iter, c10::Scalar high) {
  run_with_scalar<2, kernels::clamp_max_scalar>(iter, high);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
namespace aten = mybackend::aten;
namespace kernels = mybackend::kernels;

REGISTER_PRIVATEUSE1_DISPATCH(where_kernel, (&aten::run_pointwise<4, kernels::where>))
REGISTER_PRIVATEUSE1_DISPATCH(addcmul_stub, (&aten::run_with_scalar<4, kernels::addcmul>))
REGISTER_PRIVATEUSE1_DISPATCH(addcdiv_stub, (&aten::run_with_scalar<4, kernels::addcdiv>))
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_scalar_weight, (&aten::run_with_scalar<3, kernels::lerp_scalar_weight>))
REGISTER_PRIVATEUSE1_DISPATCH(lerp_kernel_tensor_weight, (&aten::run_pointwise<4, kernels::lerp_tensor_weight>))
REGISTER_PRIVATEUSE1_DISPATCH(clamp_stub, (&aten::run_pointwise<4, kernels::clamp>))
REGISTER_PRIVATEUSE1_DISPATCH(clamp_scalar_stub, &aten::clamp_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_min_scalar_stub, &aten::clamp_min_scalar)
REGISTER_PRIVATEUSE1_DISPATCH(clamp_max_scalar_stub, &aten::clamp_max_scalar)
}  // namespace at::native
