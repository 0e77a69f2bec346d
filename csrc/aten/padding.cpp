// Pads that reflect the inside or repeat the border, in one to three dimensions, with their backwards.
// The structured ones have been checked by upstream's meta; the others are checked here in upstream's words.
#include <ATen/native/Padding.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/pad_inside.h"
#include "csrc/runtime/stream.h"
#include "generated/resample.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

kernels::Pad describe(const Tensor& from, const Tensor& to, at::IntArrayRef in_sizes, at::IntArrayRef out_sizes,
                      at::IntArrayRef padding, bool reflect) {
  kernels::Pad p{.in = static_cast<const char*>(from.const_data_ptr()),
                 .out = static_cast<char*>(to.mutable_data_ptr()),
                 .dtype = to_dtype(from.scalar_type()),
                 .planes = 1,
                 .in_size = {1, 1, 1},
                 .out_size = {1, 1, 1},
                 .before = {0, 0, 0},
                 .reflect = reflect};
  const size_t dims = padding.size() / 2, rank = in_sizes.size();
  for (size_t d = 0; d < dims; d++) {
    p.in_size[d] = in_sizes[rank - 1 - d];
    p.out_size[d] = out_sizes[rank - 1 - d];
    p.before[d] = padding[2 * d];
  }
  for (size_t d = 0; d < rank - dims; d++) p.planes *= in_sizes[d];
  return p;
}

void forward(const Tensor& self, at::IntArrayRef padding, const Tensor& out, bool reflect) {
  if (out.numel() == 0) return;
  const Tensor from = self.contiguous();
  const Tensor to = out.is_contiguous() ? out : empty_on_current_device(out.sizes(), out.scalar_type());
  kernels::pad_inside(runtime::current_stream(self.device().index()),
                      describe(from, to, self.sizes(), out.sizes(), padding, reflect));
  if (!to.is_same(out)) out.copy_(to);
}

void backward(const Tensor& grad, const Tensor& self, at::IntArrayRef padding, const Tensor& grad_input, bool reflect) {
  if (grad_input.numel() == 0) return;
  const Tensor from = grad.contiguous();
  const Tensor to =
      grad_input.is_contiguous() ? grad_input : empty_on_current_device(grad_input.sizes(), grad_input.scalar_type());
  kernels::pad_inside_backward(runtime::current_stream(self.device().index()),
                               describe(from, to, self.sizes(), grad.sizes(), padding, reflect));
  if (!to.is_same(grad_input)) grad_input.copy_(to);
}

// What the result of a pad that is not structured looks like.
c10::DimVector padded(const Tensor& self, at::IntArrayRef padding) {
  c10::DimVector sizes(self.sizes());
  for (size_t d = 0; d < padding.size() / 2; d++) sizes[sizes.size() - 1 - d] += padding[2 * d] + padding[2 * d + 1];
  return sizes;
}

void check_grad(const Tensor& grad, const Tensor& self, at::IntArrayRef padding) {
  const c10::DimVector expected = padded(self, padding);
  const char* const names[] = {"width", "height", "depth"};
  for (size_t d = 0; d < padding.size() / 2; d++) {
    const size_t at = expected.size() - 1 - d;
    TORCH_CHECK(grad.size(static_cast<int64_t>(at)) == expected[at], "grad_output ", names[d],
                " unexpected. Expected: ", expected[at], ", Got: ", grad.size(static_cast<int64_t>(at)));
  }
}

}  // namespace

MB_IMPL_FUNC(reflection_pad1d_out)(const Tensor& self, at::IntArrayRef padding, const Tensor& out) {
  forward(self, padding, out, true);
}

MB_IMPL_FUNC(reflection_pad3d_out)(const Tensor& self, at::IntArrayRef padding, const Tensor& out) {
  forward(self, padding, out, true);
}

MB_IMPL_FUNC(reflection_pad1d_backward_grad_input)
(const Tensor& grad, const Tensor& self, at::IntArrayRef padding, const Tensor& grad_input) {
  backward(grad, self, padding, grad_input, true);
}

MB_IMPL_FUNC(reflection_pad3d_backward_grad_input)
(const Tensor& grad, const Tensor& self, at::IntArrayRef padding, const Tensor& grad_input) {
  backward(grad, self, padding, grad_input, true);
}

MB_IMPL_FUNC(replication_pad1d_out)(const Tensor& self, at::IntArrayRef padding, const Tensor& out) {
  forward(self, padding, out, false);
}

MB_IMPL_FUNC(replication_pad2d_out)(const Tensor& self, at::IntArrayRef padding, const Tensor& out) {
  forward(self, padding, out, false);
}

MB_IMPL_FUNC(replication_pad3d_out)(const Tensor& self, at::IntArrayRef padding, const Tensor& out) {
  forward(self, padding, out, false);
}

MB_IMPL_FUNC(replication_pad1d_backward_grad_input)
(const Tensor& grad, const Tensor& self, at::IntArrayRef padding, const Tensor& grad_input) {
  backward(grad, self, padding, grad_input, false);
}

Tensor& reflection_pad2d_out(const Tensor& self, at::IntArrayRef padding, Tensor& out) {
  at::native::padding::check_valid_input<2>(self, padding);
  const int64_t height = self.size(-2), width = self.size(-1);
  TORCH_CHECK(padding[0] < width && padding[1] < width,
              "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[0], ", ", padding[1], ") at dimension ", self.dim() - 1, " of input ", self.sizes());
  TORCH_CHECK(padding[2] < height && padding[3] < height,
              "Argument #6: Padding size should be less than the corresponding input dimension, but got: padding (",
              padding[2], ", ", padding[3], ") at dimension ", self.dim() - 2, " of input ", self.sizes());
  const c10::DimVector sizes = padded(self, padding);
  TORCH_CHECK(sizes.end()[-1] >= 1 || sizes.end()[-2] >= 1, "input (H: ", height, ", W: ", width,
              ") is too small. Calculated output H: ", sizes.end()[-2], " W: ", sizes.end()[-1]);
  at::native::resize_output(out, sizes);
  forward(self, padding, out, true);
  return out;
}

Tensor reflection_pad2d(const Tensor& self, at::IntArrayRef padding) {
  Tensor out = empty_on_current_device({0}, self.scalar_type());
  return reflection_pad2d_out(self, padding, out);
}

#define MB_PAD_BACKWARD(name, reflect)                                                              \
  Tensor& name##_grad_input(const Tensor& grad_output, const Tensor& self, at::IntArrayRef padding, \
                            Tensor& grad_input) {                                                   \
    check_grad(grad_output, self, padding);                                                         \
    at::native::resize_output(grad_input, self.sizes());                                            \
    backward(grad_output, self, padding, grad_input, reflect);                                      \
    return grad_input;                                                                              \
  }                                                                                                 \
  Tensor name(const Tensor& grad_output, const Tensor& self, at::IntArrayRef padding) {             \
    Tensor grad_input = empty_on_current_device(self.sizes(), grad_output.scalar_type());           \
    return name##_grad_input(grad_output, self, padding, grad_input);                               \
  }

MB_PAD_BACKWARD(reflection_pad2d_backward, true)
MB_PAD_BACKWARD(replication_pad2d_backward, false)
MB_PAD_BACKWARD(replication_pad3d_backward, false)

}  // namespace mybackend::aten
