// Of an ordinary convolution x -> y with windows(x) (N, G, C/G * k, L) and weight (G, O/G, C/G * k):
//   y = weight @ windows(x);   grad x = fold(weight^T @ grad y);   grad weight = sum over N of grad y @ windows(x)^T
// A transposed convolution swaps x and y.
#include "csrc/aten/im2col_convolution.h"

#include <ATen/ops/col2im.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sum.h>

namespace mybackend::aten {
namespace {

using at::Tensor;

Tensor by_group(const Tensor& t, int64_t groups) {
  return t.reshape({t.size(0), groups, t.size(1) / groups, -1});
}

Tensor weight_by_group(const Tensor& weight, int64_t groups) {
  return weight.reshape({1, groups, weight.size(0) / groups, -1});
}

// y of an ordinary convolution of x.
Tensor forward(const Tensor& x, const Tensor& weight, const ConvolutionParameters& p, at::IntArrayRef y_sizes) {
  const Tensor windows = at::im2col(x, weight.sizes().slice(2), p.dilation, p.padding, p.stride);
  return at::matmul(weight_by_group(weight, p.groups), by_group(windows, p.groups)).view(y_sizes);
}

// The gradient of x of an ordinary convolution, from that of y.
Tensor to_data(const Tensor& y, const Tensor& weight, const ConvolutionParameters& p, at::IntArrayRef x_sizes) {
  const Tensor windows = at::matmul(weight_by_group(weight, p.groups).mT(), by_group(y, p.groups));
  return at::col2im(windows.flatten(1, 2), x_sizes.slice(2), weight.sizes().slice(2), p.dilation, p.padding, p.stride);
}

Tensor to_filter(const Tensor& x, const Tensor& y, const ConvolutionParameters& p, at::IntArrayRef weight_sizes) {
  const Tensor windows = at::im2col(x, weight_sizes.slice(2), p.dilation, p.padding, p.stride);
  return at::matmul(by_group(y, p.groups), by_group(windows, p.groups).mT()).sum(0).view(weight_sizes);
}

void check_two_dimensions(const Tensor& input) {
  TORCH_CHECK(
      input.dim() == 4, "mybackend: a convolution over ", input.dim() - 2,
      " dimensions on the cuda driver needs libcudnn.so.9, which the dynamic loader does not find; install it or "
      "put its folder on LD_LIBRARY_PATH");
}

}  // namespace

void im2col_convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                        const ConvolutionParameters& p, const Tensor& out) {
  check_two_dimensions(input);
  if (out.numel() == 0) return;
  out.copy_(p.transposed ? to_data(input, weight, p, out.sizes()) : forward(input, weight, p, out.sizes()));
  if (bias && bias->defined()) out.add_(bias->view({1, -1, 1, 1}));
}

void im2col_convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                 const ConvolutionParameters& p, const std::array<Tensor, 3>& gradients) {
  check_two_dimensions(input);
  const auto& [grad_input, grad_weight, grad_bias] = gradients;
  if (grad_input.defined() && grad_input.numel() != 0)
    grad_input.copy_(p.transposed ? forward(grad, weight, p, input.sizes()) : to_data(grad, weight, p, input.sizes()));
  if (grad_weight.defined() && grad_weight.numel() != 0)
    grad_weight.copy_(p.transposed ? to_filter(grad, input, p, weight.sizes())
                                   : to_filter(input, grad, p, weight.sizes()));
  if (grad_bias.defined()) grad_bias.copy_(grad.sum({0, 2, 3}));
}

}  // namespace mybackend::aten
