// im2col and col2im: what nn.Unfold and nn.Fold are.
#include <ATen/native/im2col_shape_check.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/im2col.h"
#include "csrc/runtime/stream.h"
#include "generated/im2col.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

void check_pairs(std::initializer_list<std::pair<const char*, IntArrayRef>> arguments) {
  for (const auto& [name, values] : arguments)
    TORCH_CHECK(values.size() == 2, "It is expected ", name, " equals to 2, but got size ", values.size());
}

kernels::Im2colArgs arguments(const Tensor& self, int64_t batch, int64_t channels, IntArrayRef size, IntArrayRef kernel,
                              IntArrayRef dilation, IntArrayRef padding, IntArrayRef stride) {
  kernels::Im2colArgs a{};
  a.dtype = to_dtype(self.scalar_type());
  a.batch = batch;
  a.channels = channels;
  for (int d = 0; d < 2; d++) {
    a.size[d] = size[d];
    a.kernel[d] = kernel[d];
    a.stride[d] = stride[d];
    a.padding[d] = padding[d];
    a.dilation[d] = dilation[d];
    a.out[d] = (size[d] + 2 * padding[d] - (dilation[d] * (kernel[d] - 1) + 1)) / stride[d] + 1;
  }
  return a;
}

Tensor& store(const Tensor& result, Tensor& out) {
  structured::resize_output(out, result.sizes(), {}, result.options());
  out.copy_(result);
  return out;
}

}  // namespace

Tensor im2col(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
              IntArrayRef stride) {
  check_pairs({{"kernel_size", kernel_size}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}});
  at::native::im2col_shape_check(self, Tensor(), kernel_size[0], kernel_size[1], dilation[0], dilation[1], padding[0],
                                 padding[1], stride[0], stride[1]);
  const bool batched = self.dim() == 4;
  const Tensor image = self.contiguous();
  auto a = arguments(image, batched ? image.size(0) : 1, image.size(-3), image.sizes().slice(image.dim() - 2),
                     kernel_size, dilation, padding, stride);
  const int64_t rows = a.channels * a.kernel[0] * a.kernel[1], columns = a.out[0] * a.out[1];
  c10::DimVector sizes{rows, columns};
  if (batched) sizes.insert(sizes.begin(), a.batch);
  Tensor out = empty_on_current_device(sizes, image.scalar_type(), std::nullopt);
  if (out.numel() == 0) return out;
  a.in = image.const_data_ptr();
  a.result = out.mutable_data_ptr();
  kernels::im2col(runtime::current_stream(image.get_device()), a);
  return out;
}

Tensor col2im(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
              IntArrayRef padding, IntArrayRef stride) {
  check_pairs({{"output_size", output_size},
               {"kernel_size", kernel_size},
               {"dilation", dilation},
               {"padding", padding},
               {"stride", stride}});
  at::native::col2im_shape_check(self, Tensor(), output_size[0], output_size[1], kernel_size[0], kernel_size[1],
                                 dilation[0], dilation[1], padding[0], padding[1], stride[0], stride[1]);
  const bool batched = self.dim() == 3;
  const Tensor columns = self.contiguous();
  auto a = arguments(columns, batched ? columns.size(0) : 1, columns.size(-2) / (kernel_size[0] * kernel_size[1]),
                     output_size, kernel_size, dilation, padding, stride);
  c10::DimVector sizes{a.channels, output_size[0], output_size[1]};
  if (batched) sizes.insert(sizes.begin(), a.batch);
  Tensor out = empty_on_current_device(sizes, columns.scalar_type(), std::nullopt);
  if (out.numel() == 0) return out;
  a.in = columns.const_data_ptr();
  a.result = out.mutable_data_ptr();
  kernels::col2im(runtime::current_stream(columns.get_device()), a);
  return out;
}

Tensor& im2col_out(const Tensor& self, IntArrayRef kernel_size, IntArrayRef dilation, IntArrayRef padding,
                   IntArrayRef stride, Tensor& out) {
  return store(mybackend::aten::im2col(self, kernel_size, dilation, padding, stride), out);
}
Tensor& col2im_out(const Tensor& self, IntArrayRef output_size, IntArrayRef kernel_size, IntArrayRef dilation,
                   IntArrayRef padding, IntArrayRef stride, Tensor& out) {
  return store(mybackend::aten::col2im(self, output_size, kernel_size, dilation, padding, stride), out);
}

}  // namespace mybackend::aten
