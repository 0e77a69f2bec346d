// fractional_max_pool2d/3d: windows by csrc/kernels/pool_fractional.h, gradients by scatter_add.
#include <ATen/native/FractionalMaxPooling.h>
#include <ATen/ops/empty.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/pool.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/pool_fractional.h"
#include "csrc/runtime/stream.h"
#include "generated/pool_fractional.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

void forward(const Tensor& self, IntArrayRef kernel_size, const Tensor& samples, int dims, const Tensor& output,
             const Tensor& indices) {
  if (output.numel() == 0) return;
  const Tensor input = self.contiguous(), random = samples.contiguous();
  kernels::FractionalPoolArgs a{};
  a.dtype = to_dtype(input.scalar_type());
  a.planes = self.dim() == dims + 2 ? self.size(0) * self.size(1) : self.size(0);
  a.dims = dims;
  for (int d = 0; d < 3; d++) {
    const int axis = d - (3 - dims);
    a.in[d] = axis < 0 ? 1 : input.size(axis - dims);
    a.out[d] = axis < 0 ? 1 : output.size(axis - dims);
    a.pool[d] = axis < 0 ? 1 : kernel_size[axis];
    // Two-dimensional samples hold the width's first, three-dimensional ones follow the dimensions.
    a.sample[d] = axis < 0 ? -1 : (dims == 2 ? dims - 1 - axis : axis);
  }
  const pool::DenseOutput values(output, at::MemoryFormat::Contiguous), where(indices, at::MemoryFormat::Contiguous);
  a.input = input.const_data_ptr();
  a.samples = random.const_data_ptr();
  a.output = values.data();
  a.indices = where.indices();
  kernels::fractional_max_pool(runtime::current_stream(self.get_device()), a);
  values.settle();
  where.settle();
}

void backward(const Tensor& grad_output, const Tensor& indices, int dims, const Tensor& grad_input) {
  grad_input.zero_();
  if (grad_output.numel() == 0) return;
  Tensor dense = grad_input.contiguous();
  dense.flatten(-dims).scatter_add_(-1, indices.contiguous().flatten(-dims), grad_output.contiguous().flatten(-dims));
  if (!dense.is_same(grad_input)) grad_input.copy_(dense);
}

void check_backward3d(const Tensor& grad_output, const Tensor& self, IntArrayRef output_size) {
  TORCH_CHECK(output_size.size() == 3, "output_size must be a tuple of three ints");
  for (int64_t d = 0; d < 3; d++)
    TORCH_CHECK(output_size[d] == grad_output.size(d - 3), "fractional_max_pool3d_backward_out(): gradOutput ",
                d == 0   ? "time"
                : d == 1 ? "height"
                         : "width",
                " unexpected");
  TORCH_CHECK(self.dim() == grad_output.dim(), "fractional_max_pool3d_backward_out(): gradOutput has ",
              grad_output.dim(), " dimensions, expected ", self.dim());
}

}  // namespace

MB_IMPL_FUNC(fractional_max_pool2d_output)
(const Tensor& self, IntArrayRef kernel_size, IntArrayRef /*output_size*/, const Tensor& random_samples,
 const Tensor& output, const Tensor& indices) {
  at::native::fractional_max_pool_check_shape<2>(self, random_samples);
  forward(self, kernel_size, random_samples, 2, output, indices);
}

MB_IMPL_FUNC(fractional_max_pool2d_backward_grad_input)
(const Tensor& grad_output, const Tensor& /*self*/, IntArrayRef /*kernel_size*/, IntArrayRef /*output_size*/,
 const Tensor& indices, const Tensor& grad_input) {
  backward(grad_output, indices, 2, grad_input);
}

MB_IMPL_FUNC(fractional_max_pool3d_output)
(const Tensor& self, int64_t poolSizeT, int64_t poolSizeH, int64_t poolSizeW, int64_t, int64_t, int64_t,
 const Tensor& random_samples, int64_t, int64_t, int64_t, int64_t, int64_t, const Tensor& output,
 const Tensor& indices) {
  at::native::fractional_max_pool_check_shape<3>(self, random_samples);
  const int64_t kernel[] = {poolSizeT, poolSizeH, poolSizeW};
  forward(self, kernel, random_samples, 3, output, indices);
}

Tensor& fractional_max_pool3d_backward_grad_input(const Tensor& grad_output, const Tensor& self,
                                                  IntArrayRef /*kernel_size*/, IntArrayRef output_size,
                                                  const Tensor& indices, Tensor& grad_input) {
  check_backward3d(grad_output, self, output_size);
  structured::resize_output(grad_input, self.sizes(), {}, self.options());
  backward(grad_output, indices, 3, grad_input);
  return grad_input;
}

Tensor fractional_max_pool3d_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef kernel_size,
                                      IntArrayRef output_size, const Tensor& indices) {
  Tensor grad_input = at::empty({0}, self.options());
  return fractional_max_pool3d_backward_grad_input(grad_output, self, kernel_size, output_size, indices, grad_input);
}

}  // namespace mybackend::aten
