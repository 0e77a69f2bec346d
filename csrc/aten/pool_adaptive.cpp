// Pooling to a given output size: adaptive_avg_pool2d/3d, adaptive_max_pool2d/3d, and their gradients.
#include <ATen/native/AdaptivePooling.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/pool.h"
#include "csrc/aten/structured.h"
#include "generated/pool.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

c10::DimVector average_size(const Tensor& self, IntArrayRef output_size, int dims, const char* name) {
  TORCH_CHECK(int(output_size.size()) == dims, name, ": output_size must be ", dims);
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, name, "(): Expected ", dims + 1, "D or ", dims + 2,
              "D tensor, but got ", self.sizes());
  for (int64_t i = self.dim() - dims; i < self.dim(); i++)
    TORCH_CHECK(self.size(i) > 0, name,
                "(): Expected input to have non-zero size for non-batch dimensions, but input has sizes ", self.sizes(),
                " with dimension ", i, " being empty");
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end() - dims);
  sizes.append(output_size.begin(), output_size.end());
  return sizes;
}

Tensor average(const Tensor& self, IntArrayRef output_size, int dims, const char* name) {
  Tensor out = empty_on_current_device(average_size(self, output_size, dims, name), self.scalar_type(),
                                       pool::format_of(self, dims));
  pool::average(self, pool::adaptive_geometry(self, out, dims), dims, false, std::nullopt, out);
  return out;
}

Tensor& average_out(const Tensor& self, IntArrayRef output_size, int dims, const char* name, Tensor& out) {
  TORCH_CHECK(self.dtype() == out.dtype(), "expected dtype ", self.dtype(), " for `output` but got dtype ",
              out.dtype());
  const auto sizes = average_size(self, output_size, dims, name);
  structured::resize_output(out, sizes, {}, self.options().memory_format(pool::format_of(self, dims)));
  pool::average(self, pool::adaptive_geometry(self, out, dims), dims, false, std::nullopt, out);
  return out;
}

void check_average_backward(const Tensor& grad_output, const Tensor& self, int dims, const char* name) {
  at::native::adaptive_pool_empty_output_check(grad_output, name);
  TORCH_CHECK(grad_output.dim() == dims + 1 || grad_output.dim() == dims + 2, name, "(): Expected ", dims + 1, "D or ",
              dims + 2, "D tensor, but got ", grad_output.sizes());
  TORCH_CHECK(self.dim() == grad_output.dim(), name,
              "(): Expected input and grad_output to have the same number of "
              "dimensions, but got ",
              self.sizes(), " and ", grad_output.sizes());
  TORCH_CHECK(self.dtype() == grad_output.dtype(), "expected dtype ", self.dtype(), " for `grad_output` but got dtype ",
              grad_output.dtype());
}

Tensor average_backward(const Tensor& grad_output, const Tensor& self, int dims, const char* name) {
  check_average_backward(grad_output, self, dims, name);
  Tensor grad_input = empty_on_current_device(self.sizes(), self.scalar_type(), pool::format_of(self, dims));
  pool::average_backward(grad_output, self, pool::adaptive_geometry(self, grad_output, dims), dims, false, std::nullopt,
                         grad_input);
  return grad_input;
}

}  // namespace

Tensor _adaptive_avg_pool2d(const Tensor& self, IntArrayRef output_size) {
  return average(self, output_size, 2, "adaptive_avg_pool2d");
}
Tensor& adaptive_avg_pool2d_out(const Tensor& self, IntArrayRef output_size, Tensor& out) {
  return average_out(self, output_size, 2, "adaptive_avg_pool2d", out);
}
Tensor _adaptive_avg_pool2d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward(grad_output, self, 2, "adaptive_avg_pool2d_backward");
}

Tensor _adaptive_avg_pool3d(const Tensor& self, IntArrayRef output_size) {
  return average(self, output_size, 3, "adaptive_avg_pool3d");
}
Tensor& adaptive_avg_pool3d_out(const Tensor& self, IntArrayRef output_size, Tensor& out) {
  return average_out(self, output_size, 3, "adaptive_avg_pool3d", out);
}
Tensor _adaptive_avg_pool3d_backward(const Tensor& grad_output, const Tensor& self) {
  return average_backward(grad_output, self, 3, "adaptive_avg_pool3d_backward");
}
Tensor& adaptive_avg_pool3d_backward_grad_input(const Tensor& grad_output, const Tensor& self, Tensor& grad_input) {
  check_average_backward(grad_output, self, 3, "adaptive_avg_pool3d_backward");
  structured::resize_output(grad_input, self.sizes(), {}, self.options().memory_format(pool::format_of(self, 3)));
  pool::average_backward(grad_output, self, pool::adaptive_geometry(self, grad_output, 3), 3, false, std::nullopt,
                         grad_input);
  return grad_input;
}

MB_IMPL_FUNC(adaptive_max_pool2d_out)
(const Tensor& self, IntArrayRef /*output_size*/, const Tensor& out, const Tensor& indices) {
  pool::max(self, pool::adaptive_geometry(self, out, 2), 2, out, indices);
}
MB_IMPL_FUNC(adaptive_max_pool2d_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& grad_input) {
  pool::max_backward(grad_output, self, indices, pool::adaptive_geometry(self, grad_output, 2), 2, grad_input);
}
MB_IMPL_FUNC(adaptive_max_pool3d_out)
(const Tensor& self, IntArrayRef /*output_size*/, const Tensor& out, const Tensor& indices) {
  pool::max(self, pool::adaptive_geometry(self, out, 3), 3, out, indices);
}
MB_IMPL_FUNC(adaptive_max_pool3d_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, const Tensor& indices, const Tensor& grad_input) {
  pool::max_backward(grad_output, self, indices, pool::adaptive_geometry(self, grad_output, 3), 3, grad_input);
}

}  // namespace mybackend::aten
