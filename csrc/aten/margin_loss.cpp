// multi_margin_loss and multilabel_margin_loss: rows by csrc/kernels/margin_loss.h, the reduction by sum.
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/LossMulti.h>
#include <ATen/native/Resize.h>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/kernels/margin_loss.h"
#include "csrc/runtime/errors.h"
#include "generated/margin_loss.h"

namespace mybackend::aten {
namespace {

using at::Scalar;
using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.device().index());
}

void check_long(const Tensor& target) {
  TORCH_CHECK(target.scalar_type() == at::kLong, "expected scalar type ", at::kLong, " but found ",
              target.scalar_type());
}

// The rows' losses, reduced, in the shape `sizes` without a reduction.
Tensor reduced(const Tensor& rows, int64_t reduction, at::IntArrayRef sizes, at::ScalarType type) {
  if (reduction == at::Reduction::None) return rows.to(type).view(sizes);
  const Tensor sum = rows.sum();
  return (reduction == at::Reduction::Mean ? sum.div_(rows.numel()) : sum).to(type);
}

// What gradients are multiplied by.
double scale_of(int64_t reduction, int64_t rows, int64_t classes) {
  return 1.0 / static_cast<double>(reduction == at::Reduction::Mean ? rows * classes : classes);
}

Tensor& give(Tensor& out, const Tensor& result) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// The arguments of a kernel, and the contiguous tensors they point into.
struct Multi {
  Tensor self, target, weight;
  kernels::MultiMargin args{};

  Multi(const Tensor& self_in, const Tensor& target_in, const Scalar& p, const Scalar& margin,
        const OptionalTensor& weight_in)
      : self(self_in.contiguous()), target(target_in.contiguous()) {
    TORCH_CHECK(p.toLong() == 1 || p.toLong() == 2, "multi_margin_loss: Invalid p, expected 1 or 2 but got ",
                p.toLong());
    int64_t rows = 0, classes = 0;
    at::native::multi_margin_loss_shape_check(rows, classes, self.dim(), self, target, weight_in);
    check_long(target);
    if (weight_in && weight_in->defined()) weight = weight_in->contiguous();
    TORCH_CHECK(!weight.defined() || weight.scalar_type() == self.scalar_type(), "expected scalar type ",
                self.scalar_type(), " but found ", weight.scalar_type());
    args = {to_dtype(self.scalar_type()),
            rows,
            classes,
            static_cast<int>(p.toLong()),
            margin.toDouble(),
            self.const_data_ptr(),
            target.const_data_ptr<int64_t>(),
            weight.defined() ? weight.const_data_ptr() : nullptr,
            runtime::error_record(self.device().index())};
  }
};

struct Multilabel {
  Tensor self, target;
  kernels::MultilabelMargin args{};

  Multilabel(const Tensor& self_in, const Tensor& target_in)
      : self(self_in.contiguous()), target(target_in.contiguous()) {
    int64_t rows = 0, classes = 0;
    at::native::multilabel_margin_loss_shape_check(rows, classes, self.dim(), self, target);
    check_long(target);
    args = {to_dtype(self.scalar_type()),
            rows,
            classes,
            self.const_data_ptr(),
            target.const_data_ptr<int64_t>(),
            runtime::error_record(self.device().index())};
  }
};

// The gradient of the loss as contiguous numbers, and the step from one row's to the next.
struct LossGradient {
  Tensor data;
  int64_t stride;

  LossGradient(const Tensor& grad, const Tensor& self, int64_t reduction, int64_t rows)
      : data(grad.contiguous()), stride(reduction == at::Reduction::None && self.dim() > 0 ? 1 : 0) {
    TORCH_CHECK(data.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
                data.scalar_type());
    TORCH_CHECK(data.numel() == (stride == 0 ? 1 : rows), "expected grad_output to have ", stride == 0 ? 1 : rows,
                " elements, but got shape ", data.sizes());
  }
};

}  // namespace

Tensor multi_margin_loss(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                         const OptionalTensor& weight, int64_t reduction) {
  const Multi multi(self, target, p, margin, weight);
  const Tensor rows = empty_on_current_device({multi.args.rows}, compute_type(self.scalar_type()));
  kernels::multi_margin_loss(stream_of(self), multi.args, rows.mutable_data_ptr());
  runtime::check_device_errors(self.device().index());
  return reduced(rows, reduction, target.sizes(), self.scalar_type());
}

Tensor& multi_margin_loss_out(const Tensor& self, const Tensor& target, const Scalar& p, const Scalar& margin,
                              const OptionalTensor& weight, int64_t reduction, Tensor& out) {
  return give(out, aten::multi_margin_loss(self, target, p, margin, weight, reduction));
}

Tensor multi_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target, const Scalar& p,
                                  const Scalar& margin, const OptionalTensor& weight, int64_t reduction) {
  const Multi multi(self, target, p, margin, weight);
  Tensor grad_in = empty_on_current_device(self.sizes(), self.scalar_type());
  if (multi.args.rows == 0) return grad_in;
  const LossGradient grad(grad_output, self, reduction, multi.args.rows);
  kernels::multi_margin_loss_backward(stream_of(self), multi.args, grad.data.const_data_ptr(), grad.stride,
                                      scale_of(reduction, multi.args.rows, multi.args.classes),
                                      grad_in.mutable_data_ptr());
  runtime::check_device_errors(self.device().index());
  return grad_in;
}

Tensor& multi_margin_loss_backward_grad_input(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                              const Scalar& p, const Scalar& margin, const OptionalTensor& weight,
                                              int64_t reduction, Tensor& grad_input) {
  return give(grad_input, aten::multi_margin_loss_backward(grad_output, self, target, p, margin, weight, reduction));
}

std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction) {
  const Multilabel labels(self, target);
  const Tensor rows = empty_on_current_device({labels.args.rows}, compute_type(self.scalar_type()));
  Tensor is_target = empty_on_current_device(target.sizes(), self.scalar_type());
  kernels::multilabel_margin_loss(stream_of(self), labels.args, rows.mutable_data_ptr(), is_target.mutable_data_ptr());
  runtime::check_device_errors(self.device().index());
  const at::IntArrayRef sizes = self.dim() <= 1 ? at::IntArrayRef{} : rows.sizes();
  return {reduced(rows, reduction, sizes, self.scalar_type()), std::move(is_target)};
}

std::tuple<Tensor&, Tensor&> multilabel_margin_loss_forward_output(const Tensor& self, const Tensor& target,
                                                                   int64_t reduction, Tensor& output,
                                                                   Tensor& is_target) {
  const auto [loss, mask] = aten::multilabel_margin_loss_forward(self, target, reduction);
  give(output, loss);
  give(is_target, mask);
  return {output, is_target};
}

Tensor multilabel_margin_loss_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                       int64_t reduction, const Tensor& is_target) {
  const Multilabel labels(self, target);
  Tensor grad_in = empty_on_current_device(self.sizes(), self.scalar_type());
  if (labels.args.rows == 0) return grad_in;
  TORCH_CHECK(is_target.sizes() == target.sizes() && is_target.scalar_type() == self.scalar_type(),
              "inconsistent is_target size: ", is_target.sizes(), " for target of size: ", target.sizes());
  const LossGradient grad(grad_output, self, self.dim() <= 1 ? int64_t(at::Reduction::Sum) : reduction,
                          labels.args.rows);
  const Tensor mask = is_target.contiguous();
  kernels::multilabel_margin_loss_backward(
      stream_of(self), labels.args, mask.const_data_ptr(), grad.data.const_data_ptr(), grad.stride,
      scale_of(reduction, labels.args.rows, labels.args.classes), grad_in.mutable_data_ptr());
  return grad_in;
}

Tensor& multilabel_margin_loss_backward_grad_input(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                                   int64_t reduction, const Tensor& is_target, Tensor& grad_input) {
  return give(grad_input, aten::multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target));
}

}  // namespace mybackend::aten
