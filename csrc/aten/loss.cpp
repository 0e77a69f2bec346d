// Negative log likelihood, for (N, C) or (C) and for images (N, C, H, W).
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/nll_loss.h"
#include "csrc/runtime/errors.h"
#include "generated/loss.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The arguments of a kernel, and the contiguous tensors they point into.
struct Nll {
  Tensor target, weight;
  kernels::NllLossArgs args;

  Nll(const Tensor& self, const Tensor& target_in, const OptionalTensor& weight_in, int64_t reduction, int64_t ignore,
      int64_t n, int64_t c, int64_t s)
      : target(target_in.contiguous()) {
    if (weight_in && weight_in->defined()) weight = weight_in->contiguous();
    TORCH_CHECK(target.scalar_type() == at::kLong || target.scalar_type() == at::kByte,
                "expected target dtype to be Long or Byte, but got ", target.scalar_type());
    TORCH_CHECK(!weight.defined() || weight.scalar_type() == self.scalar_type(), "expected scalar type ",
                self.scalar_type(), " but found ", weight.scalar_type());
    args = {n,
            c,
            s,
            ignore,
            static_cast<kernels::LossReduction>(reduction),
            to_dtype(self.scalar_type()),
            to_dtype(target.scalar_type()),
            target.const_data_ptr(),
            weight.defined() ? weight.const_data_ptr() : nullptr};
  }

  bool reduces() const { return args.reduction != kernels::LossReduction::None; }

  // For scores of shape (N, C) or (C).
  static Nll of_rows(const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
                     int64_t ignore) {
    return {self, target, weight, reduction, ignore, self.dim() == 1 ? 1 : self.size(0), self.size(-1), 1};
  }

  static Nll of_images(const Tensor& self, const Tensor& target, const OptionalTensor& weight, int64_t reduction,
                       int64_t ignore) {
    TORCH_CHECK(target.dim() == 3,
                "only batches of spatial targets supported (3D tensors) but got targets of dimension: ", target.dim());
    TORCH_CHECK(self.dim() == 4,
                "only batches of spatial inputs supported (4D tensors), but got input of dimension: ", self.dim());
    TORCH_CHECK(self.size(0) == target.size(0) && self.size(2) == target.size(1) && self.size(3) == target.size(2),
                "size mismatch (got input: ", self.sizes(), " , target: ", target.sizes());
    TORCH_CHECK(!(weight && weight->defined()) || weight->numel() == self.size(1),
                "weight tensor should be defined either for all or no classes");
    return {self, target, weight, reduction, ignore, self.size(0), self.size(1), self.size(2) * self.size(3)};
  }
};

template <class F>
void with_contiguous(const Tensor& out, F f) {
  if (out.is_contiguous()) return f(out);
  const Tensor result = at::empty_like(out, at::MemoryFormat::Contiguous);
  f(result);
  out.copy_(result);
}

void forward(const Nll& nll, const Tensor& self, const Tensor& output, const Tensor& total_weight) {
  const auto index = self.device().index();
  const auto scores = self.expect_contiguous();
  const int64_t count = nll.args.n * nll.args.s;
  const Tensor workspace =
      empty_on_current_device({2 * kernels::nll_loss_pieces(count)}, compute_type(self.scalar_type()));
  if (!nll.reduces()) total_weight.zero_();
  with_contiguous(output, [&](const Tensor& loss) {
    kernels::nll_loss(runtime::current_stream(index), nll.args, scores->const_data_ptr(), loss.mutable_data_ptr(),
                      total_weight.mutable_data_ptr(), workspace.mutable_data_ptr(), runtime::error_record(index));
  });
  runtime::check_device_errors(index);
}

void backward(const Nll& nll, const Tensor& grad_output, const Tensor& total_weight, const Tensor& grad_input) {
  const auto index = grad_output.device().index();
  const auto grad = grad_output.expect_contiguous();
  with_contiguous(grad_input, [&](const Tensor& result) {
    kernels::nll_loss_backward(runtime::current_stream(index), nll.args, grad->const_data_ptr(),
                               total_weight.const_data_ptr(), result.mutable_data_ptr(), runtime::error_record(index));
  });
  runtime::check_device_errors(index);
}

}  // namespace

MB_IMPL_FUNC(nll_loss_forward_output)
(const Tensor& self, const Tensor& target, at::OptionalTensorRef weight, int64_t reduction, int64_t ignore_index,
 const Tensor& output, const Tensor& total_weight) {
  const OptionalTensor weights = weight.has_value() ? OptionalTensor(*weight) : std::nullopt;
  forward(Nll::of_rows(self, target, weights, reduction, ignore_index), self, output, total_weight);
}

MB_IMPL_FUNC(nll_loss_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, const Tensor& target, at::OptionalTensorRef weight, int64_t reduction,
 int64_t ignore_index, const Tensor& total_weight, const Tensor& grad_input) {
  const OptionalTensor weights = weight.has_value() ? OptionalTensor(*weight) : std::nullopt;
  backward(Nll::of_rows(self, target, weights, reduction, ignore_index), grad_output, total_weight, grad_input);
}

std::tuple<Tensor&, Tensor&> nll_loss2d_forward_output(const Tensor& self, const Tensor& target,
                                                       const OptionalTensor& weight, int64_t reduction,
                                                       int64_t ignore_index, Tensor& output, Tensor& total_weight) {
  const Nll nll = Nll::of_images(self, target, weight, reduction, ignore_index);
  at::native::resize_output(output, nll.reduces() ? at::IntArrayRef{} : target.sizes());
  at::native::resize_output(total_weight, {});
  forward(nll, self, output, total_weight);
  return {output, total_weight};
}

std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                                              int64_t reduction, int64_t ignore_index) {
  const Nll nll = Nll::of_images(self, target, weight, reduction, ignore_index);
  Tensor output = empty_on_current_device(nll.reduces() ? at::IntArrayRef{} : target.sizes(), self.scalar_type());
  Tensor total_weight = empty_on_current_device({}, self.scalar_type());
  forward(nll, self, output, total_weight);
  return {std::move(output), std::move(total_weight)};
}

Tensor& nll_loss2d_backward_grad_input(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                                       const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
                                       const Tensor& total_weight, Tensor& grad_input) {
  const Nll nll = Nll::of_images(self, target, weight, reduction, ignore_index);
  at::native::resize_output(grad_input, self.sizes());
  backward(nll, grad_output, total_weight, grad_input);
  return grad_input;
}

Tensor nll_loss2d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& target,
                           const OptionalTensor& weight, int64_t reduction, int64_t ignore_index,
                           const Tensor& total_weight) {
  const Nll nll = Nll::of_images(self, target, weight, reduction, ignore_index);
  Tensor grad_input = empty_on_current_device(self.sizes(), self.scalar_type());
  backward(nll, grad_output, total_weight, grad_input);
  return grad_input;
}

}  // namespace mybackend::aten
