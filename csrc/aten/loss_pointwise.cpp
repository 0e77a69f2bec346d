// Losses that are pointwise before their reduction: our kernels behind upstream's stubs; binary_cross_entropy, whose
// implementation upstream does not share between devices, here.
#include <ATen/core/Reduction.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/PointwiseOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/sum.h>

#include "csrc/aten/pointwise.h"
#include "csrc/kernels/loss.h"
#include "csrc/runtime/errors.h"
#include "generated/loss_pointwise.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

void smooth_l1(at::TensorIteratorBase& iter, double beta) {
  kernels::smooth_l1(stream_of(iter), operands_of<3>(iter), beta);
}

void huber(at::TensorIterator& iter, double delta) {
  kernels::huber(stream_of(iter), operands_of<3>(iter), delta);
}

void smooth_l1_backward(at::TensorIterator& iter, const c10::Scalar& scale, double beta) {
  kernels::smooth_l1_backward(stream_of(iter), operands_of<4>(iter), scale.toDouble(), beta);
}

void huber_backward(at::TensorIterator& iter, const c10::Scalar& scale, double delta) {
  kernels::huber_backward(stream_of(iter), operands_of<4>(iter), scale.toDouble(), delta);
}

}  // namespace

Tensor& binary_cross_entropy_out(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                                 int64_t reduction, Tensor& out) {
  const bool whole = reduction == at::Reduction::None;
  Tensor loss = whole ? out : at::empty_like(self);
  if (whole) at::native::resize_output(out, self.sizes());
  auto iter = at::TensorIteratorConfig().add_output(loss).add_const_input(self).add_const_input(target).build();
  const c10::DeviceIndex device = self.device().index();
  kernels::binary_cross_entropy(stream_of(iter), operands_of<3>(iter), runtime::error_record(device));
  runtime::check_device_errors(device);
  if (weight && weight->defined()) loss.mul_(*weight);
  if (whole) return out;
  return reduction == at::Reduction::Mean ? at::mean_out(out, loss, at::IntArrayRef{})
                                          : at::sum_out(out, loss, at::IntArrayRef{});
}

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const std::optional<Tensor>& weight,
                            int64_t reduction) {
  Tensor out = reduction == at::Reduction::None ? at::empty_like(self) : at::empty({0}, self.options());
  binary_cross_entropy_out(self, target, weight, reduction, out);
  return out;
}

Tensor& binary_cross_entropy_backward_grad_input(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                                 const std::optional<Tensor>& weight, int64_t reduction,
                                                 Tensor& grad_input) {
  at::native::resize_output(grad_input, self.sizes());
  auto iter = at::TensorIteratorConfig()
                  .add_output(grad_input)
                  .add_owned_const_input(grad_output.expand_as(self))
                  .add_const_input(self)
                  .add_const_input(target)
                  .resize_outputs(false)
                  .build();
  run_pointwise<4, kernels::binary_cross_entropy_backward>(iter);
  if (weight && weight->defined()) grad_input.mul_(*weight);
  if (reduction == at::Reduction::Mean) grad_input.div_(self.numel());
  return grad_input;
}

Tensor binary_cross_entropy_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                     const std::optional<Tensor>& weight, int64_t reduction) {
  Tensor grad_input = at::empty_like(self);
  binary_cross_entropy_backward_grad_input(grad_output, self, target, weight, reduction, grad_input);
  return grad_input;
}

}  // namespace mybackend::aten

namespace at::native {
namespace aten = mybackend::aten;
namespace kernels = mybackend::kernels;

REGISTER_PRIVATEUSE1_DISPATCH(mse_stub, (&aten::run_pointwise<3, kernels::mse>))
REGISTER_PRIVATEUSE1_DISPATCH(mse_backward_stub, (&aten::run_with_doubles<4, kernels::mse_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(smooth_l1_stub, &aten::smooth_l1)
REGISTER_PRIVATEUSE1_DISPATCH(smooth_l1_backward_stub, &aten::smooth_l1_backward)
REGISTER_PRIVATEUSE1_DISPATCH(huber_stub, &aten::huber)
REGISTER_PRIVATEUSE1_DISPATCH(huber_backward_stub, &aten::huber_backward)
}  // namespace at::native
