// softmax, log_softmax, _masked_softmax and their gradients.
#include "csrc/kernels/softmax.h"

#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/_softmax_backward_data.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "generated/softmax.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

kernels::SoftmaxShape shape_along(const Tensor& tensor, int64_t dim) {
  kernels::SoftmaxShape shape{1, 1, 1};
  if (tensor.dim() == 0) return shape;
  dim = at::maybe_wrap_dim(dim, tensor.dim());
  for (int64_t d = 0; d < tensor.dim(); d++)
    (d < dim ? shape.outer : d == dim ? shape.dim : shape.inner) *= tensor.size(d);
  return shape;
}

// Calls f(result), where `result` is `out` if that is contiguous, or else a tensor that is copied to it.
template <class F>
void with_contiguous(const Tensor& out, F f) {
  if (out.is_contiguous()) return f(out);
  const Tensor result = at::empty_like(out, at::MemoryFormat::Contiguous);
  f(result);
  out.copy_(result);
}

void forward(const Tensor& self, int64_t dim, const Tensor& out, bool log) {
  if (self.numel() == 0) return;
  const auto in = self.expect_contiguous();
  with_contiguous(out, [&](const Tensor& result) {
    kernels::softmax(runtime::current_stream(self.device().index()), result.mutable_data_ptr(), in->const_data_ptr(),
                     shape_along(self, dim), to_dtype(result.scalar_type()), to_dtype(self.scalar_type()), log);
  });
}

void backward(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& grad_input, bool log) {
  if (grad.numel() == 0) return;
  const auto g = grad.expect_contiguous(), y = output.expect_contiguous();
  with_contiguous(grad_input, [&](const Tensor& result) {
    kernels::softmax_backward(runtime::current_stream(grad.device().index()), result.mutable_data_ptr(),
                              g->const_data_ptr(), y->const_data_ptr(), shape_along(grad, dim),
                              to_dtype(result.scalar_type()), to_dtype(grad.scalar_type()), log);
  });
}

// The mask in the shape of `self`. mask_type 0: (L, L), 1: (B, L), 2: that of `self`, (B, H, L, L).
Tensor spread_mask(const Tensor& self, const Tensor& mask, std::optional<int64_t> mask_type) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(mask_type.has_value(), "Mask Type should be defined");
  TORCH_CHECK(*mask_type >= 0 && *mask_type <= 2,
              "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 (default_mask)");
  if (*mask_type == 2) {
    TORCH_CHECK(mask.sizes() == self.sizes(), "For mask_type == 2 mask shape should match input shape");
    return mask;
  }
  TORCH_CHECK(self.dim() == 4 && mask.dim() == 2, "Mask should be 2D and the input 4D for mask types 0 and 1");
  const Tensor shaped =
      *mask_type == 1 ? mask.view({mask.size(0), 1, 1, mask.size(1)}) : mask.view({1, 1, mask.size(0), mask.size(1)});
  return shaped.expand(self.sizes());
}

}  // namespace

MB_IMPL_FUNC(_softmax_out)(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward(self, dim, out, false);
}

MB_IMPL_FUNC(_log_softmax_out)(const Tensor& self, int64_t dim, bool /*half_to_float*/, const Tensor& out) {
  forward(self, dim, out, true);
}

MB_IMPL_FUNC(_softmax_backward_data_out)
(const Tensor& grad_output, const Tensor& output, int64_t dim, at::ScalarType /*input_dtype*/,
 const Tensor& grad_input) {
  backward(grad_output, output, dim, grad_input, false);
}

MB_IMPL_FUNC(_log_softmax_backward_data_out)
(const Tensor& grad_output, const Tensor& output, int64_t dim, at::ScalarType /*input_dtype*/, const Tensor& out) {
  backward(grad_output, output, dim, out, true);
}

// A row that is masked as a whole becomes NaN, as on CUDA.
Tensor _masked_softmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim,
                       std::optional<int64_t> mask_type) {
  const Tensor masked = spread_mask(self, mask, mask_type);
  return at::_softmax(self.masked_fill(masked, -std::numeric_limits<double>::infinity()), dim.value_or(-1), false);
}

Tensor _masked_softmax_backward(const Tensor& grad_output, const Tensor& output, const Tensor& mask,
                                std::optional<int64_t> dim) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  const Tensor grad = at::_softmax_backward_data(grad_output, output, dim.value_or(-1), grad_output.scalar_type());
  return grad.masked_fill(mask.expand(grad.sizes()), 0);
}

}  // namespace mybackend::aten
