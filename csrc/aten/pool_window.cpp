// Pooling over windows of a given size: max_pool2d/3d with indices, avg_pool2d/3d, and their gradients.
#include <ATen/native/Pool.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/pool.h"
#include "csrc/aten/structured.h"
#include "generated/pool.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;
using pool::Window;

struct Sizes3 {
  int64_t t, h, w;
};

Sizes3 three(IntArrayRef values, IntArrayRef otherwise) {
  const IntArrayRef from = values.empty() ? otherwise : values;
  return from.size() == 1 ? Sizes3{from[0], from[0], from[0]} : Sizes3{from[0], from[1], from[2]};
}

void check_three(IntArrayRef values, const char* name, bool may_be_empty) {
  TORCH_CHECK(values.size() == 1 || values.size() == 3 || (may_be_empty && values.empty()), "max_pool3d: ", name,
              " must either be ", may_be_empty ? "omitted, " : "", "a single int, or a tuple of three ints");
}

// max_pool3d has no meta function that a backend can use: this is its checks and the output's size.
c10::DimVector max_pool3d_size(const Tensor& self, const Window& window, bool ceil_mode) {
  check_three(window.kernel, "kernel_size", false);
  check_three(window.stride, "stride", true);
  check_three(window.padding, "padding", false);
  check_three(window.dilation, "dilation", false);
  const Sizes3 k = three(window.kernel, {}), s = three(window.stride, window.kernel), p = three(window.padding, {}),
               l = three(window.dilation, {});
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input, but got dim: ", self.dim());
  const int64_t slices = self.size(-4), time = self.size(-3), height = self.size(-2), width = self.size(-1);
  const int64_t ot = at::native::pooling_output_shape<int64_t>(time, k.t, p.t, s.t, l.t, ceil_mode);
  const int64_t oh = at::native::pooling_output_shape<int64_t>(height, k.h, p.h, s.h, l.h, ceil_mode);
  const int64_t ow = at::native::pooling_output_shape<int64_t>(width, k.w, p.w, s.w, l.w, ceil_mode);
  at::native::pool3d_shape_check(self, slices, k.t, k.h, k.w, s.t, s.h, s.w, p.t, p.h, p.w, l.t, l.h, l.w, time, height,
                                 width, ot, oh, ow, "max_pool3d_with_indices()");
  if (self.dim() == 5) return {self.size(0), slices, ot, oh, ow};
  return {slices, ot, oh, ow};
}

void check_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, const Tensor& indices,
                               const Window& window) {
  check_three(window.kernel, "kernel_size", false);
  check_three(window.stride, "stride", true);
  check_three(window.padding, "padding", false);
  check_three(window.dilation, "dilation", false);
  TORCH_CHECK(self.dim() == 4 || self.dim() == 5,
              "non-empty 4D or 5D (batch mode) tensor expected for input, but got dim: ", self.dim());
  const Sizes3 k = three(window.kernel, {}), s = three(window.stride, window.kernel), p = three(window.padding, {}),
               l = three(window.dilation, {});
  at::native::max_pool3d_backward_shape_check(self, grad_output, indices, self.size(-4), k.t, k.h, k.w, s.t, s.h, s.w,
                                              p.t, p.h, p.w, l.t, l.h, l.w, self.size(-3), self.size(-2), self.size(-1),
                                              grad_output.size(-3), grad_output.size(-2), grad_output.size(-1),
                                              "max_pool3d_with_indices_backward()");
}

Tensor empty_as(const Tensor& self, IntArrayRef sizes, at::ScalarType dtype, int dims) {
  return empty_on_current_device(sizes, dtype, pool::format_of(self, dims));
}

}  // namespace

MB_IMPL_FUNC(max_pool2d_with_indices_out)
(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
 bool /*ceil_mode*/, const Tensor& out, const Tensor& indices) {
  pool::max(self, pool::geometry(self, out, 2, {kernel_size, stride, padding, dilation}), 2, out, indices);
}

MB_IMPL_FUNC(max_pool2d_with_indices_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
 IntArrayRef dilation, bool /*ceil_mode*/, const Tensor& indices, const Tensor& grad_input) {
  pool::max_backward(grad_output, self, indices,
                     pool::geometry(self, grad_output, 2, {kernel_size, stride, padding, dilation}), 2, grad_input);
}

std::tuple<Tensor&, Tensor&> max_pool3d_with_indices_out(const Tensor& self, IntArrayRef kernel_size,
                                                         IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                                         bool ceil_mode, Tensor& out, Tensor& indices) {
  const Window window{kernel_size, stride, padding, dilation};
  const auto sizes = max_pool3d_size(self, window, ceil_mode);
  const auto format = pool::format_of(self, 3);
  structured::resize_output(out, sizes, {}, self.options().memory_format(format));
  structured::resize_output(indices, sizes, {}, self.options().dtype(at::kLong).memory_format(format));
  pool::max(self, pool::geometry(self, out, 3, window), 3, out, indices);
  return {out, indices};
}

std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const Window window{kernel_size, stride, padding, dilation};
  const auto sizes = max_pool3d_size(self, window, ceil_mode);
  Tensor out = empty_as(self, sizes, self.scalar_type(), 3), indices = empty_as(self, sizes, at::kLong, 3);
  pool::max(self, pool::geometry(self, out, 3, window), 3, out, indices);
  return {out, indices};
}

Tensor& max_pool3d_with_indices_backward_grad_input(const Tensor& grad_output, const Tensor& self,
                                                    IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                                                    IntArrayRef dilation, bool /*ceil_mode*/, const Tensor& indices,
                                                    Tensor& grad_input) {
  const Window window{kernel_size, stride, padding, dilation};
  check_max_pool3d_backward(grad_output, self, indices, window);
  structured::resize_output(grad_input, self.sizes(), {}, self.options().memory_format(pool::format_of(self, 3)));
  pool::max_backward(grad_output, self, indices, pool::geometry(self, grad_output, 3, window), 3, grad_input);
  return grad_input;
}

Tensor max_pool3d_with_indices_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size,
                                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                        bool /*ceil_mode*/, const Tensor& indices) {
  const Window window{kernel_size, stride, padding, dilation};
  check_max_pool3d_backward(grad_output, self, indices, window);
  Tensor grad_input = empty_as(self, self.sizes(), self.scalar_type(), 3);
  pool::max_backward(grad_output, self, indices, pool::geometry(self, grad_output, 3, window), 3, grad_input);
  return grad_input;
}

MB_IMPL_FUNC(avg_pool2d_out)
(const Tensor& self, int64_t kH, int64_t kW, int64_t dH, int64_t dW, int64_t padH, int64_t padW, bool /*ceil_mode*/,
 bool count_include_pad, std::optional<int64_t> divisor_override, const Tensor& out) {
  const int64_t kernel[] = {kH, kW}, stride[] = {dH, dW}, padding[] = {padH, padW};
  pool::average(self, pool::geometry(self, out, 2, {kernel, stride, padding, {}}), 2, count_include_pad,
                divisor_override, out);
}

MB_IMPL_FUNC(avg_pool2d_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
 bool /*ceil_mode*/, bool count_include_pad, std::optional<int64_t> divisor_override, const Tensor& grad_input) {
  pool::average_backward(grad_output, self, pool::geometry(self, grad_output, 2, {kernel_size, stride, padding, {}}), 2,
                         count_include_pad, divisor_override, grad_input);
}

MB_IMPL_FUNC(avg_pool3d_out)
(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, bool /*ceil_mode*/,
 bool count_include_pad, std::optional<int64_t> divisor_override, const Tensor& out) {
  pool::average(self, pool::geometry(self, out, 3, {kernel_size, stride, padding, {}}), 3, count_include_pad,
                divisor_override, out);
}

MB_IMPL_FUNC(avg_pool3d_backward_grad_input)
(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
 bool /*ceil_mode*/, bool count_include_pad, std::optional<int64_t> divisor_override, const Tensor& grad_input) {
  pool::average_backward(grad_output, self, pool::geometry(self, grad_output, 3, {kernel_size, stride, padding, {}}), 3,
                         count_include_pad, divisor_override, grad_input);
}

}  // namespace mybackend::aten
