#include "csrc/aten/pool.h"

#include <ATen/ops/empty_like.h>

#include <limits>

#include "csrc/aten/iterator.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten::pool {
namespace {

using at::IntArrayRef;
using at::Tensor;
using kernels::PoolGeometry;

int64_t value_at(IntArrayRef values, int i) {
  return values.size() == 1 ? values[0] : values[i];
}

PoolGeometry sizes_of(const Tensor& input, const Tensor& output, int dims) {
  PoolGeometry g{};
  g.batch = input.dim() == dims + 2 ? input.size(0) : 1;
  g.channels = input.size(-dims - 1);
  for (int d = 0; d < 3; d++) {
    const int axis = d - (3 - dims);  // of the pooled dimensions
    g.in[d] = axis < 0 ? 1 : input.size(axis - dims);
    g.out[d] = axis < 0 ? 1 : output.size(axis - dims);
    TORCH_CHECK(g.in[d] <= std::numeric_limits<int>::max() && g.out[d] <= std::numeric_limits<int>::max(),
                "mybackend: a pooled dimension must be smaller than 2^31, got ", g.in[d]);
    g.kernel[d] = g.stride[d] = g.dilation[d] = 1;
  }
  return g;
}

device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.get_device());
}

}  // namespace

PoolGeometry geometry(const Tensor& input, const Tensor& output, int dims, const Window& window) {
  PoolGeometry g = sizes_of(input, output, dims);
  for (int axis = 0; axis < dims; axis++) {
    const int d = axis + 3 - dims;
    g.kernel[d] = value_at(window.kernel, axis);
    g.stride[d] = window.stride.empty() ? g.kernel[d] : value_at(window.stride, axis);
    g.padding[d] = value_at(window.padding, axis);
    g.dilation[d] = window.dilation.empty() ? 1 : value_at(window.dilation, axis);
  }
  return g;
}

PoolGeometry adaptive_geometry(const Tensor& input, const Tensor& output, int dims) {
  PoolGeometry g = sizes_of(input, output, dims);
  g.adaptive = true;
  return g;
}

at::MemoryFormat format_of(const Tensor& input, int dims) {
  return input.dim() == dims + 2 ? input.suggest_memory_format() : at::MemoryFormat::Contiguous;
}

DenseOutput::DenseOutput(const Tensor& out, at::MemoryFormat format)
    : out_(out), dense_(out.is_contiguous(format) ? out : at::empty_like(out, format)) {}

void DenseOutput::settle() const {
  if (!dense_.is_same(out_)) out_.copy_(dense_);
}

void max(const Tensor& input, PoolGeometry geometry, int dims, const Tensor& output, const Tensor& indices) {
  if (output.numel() == 0) return;
  const auto format = format_of(input, dims);
  geometry.channels_last = format != at::MemoryFormat::Contiguous;
  const Tensor dense = input.contiguous(format);
  const DenseOutput values(output, format), where(indices, format);
  kernels::max_pool(stream_of(input),
                    {geometry, to_dtype(input.scalar_type()), dense.const_data_ptr(), values.data(), where.indices()});
  values.settle();
  where.settle();
}

void max_backward(const Tensor& grad_output, const Tensor& input, const Tensor& indices, PoolGeometry geometry,
                  int dims, const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  if (grad_output.numel() == 0) {
    grad_input.zero_();
    return;
  }
  const auto format = format_of(input, dims);
  geometry.channels_last = format != at::MemoryFormat::Contiguous;
  const Tensor grad = grad_output.contiguous(format), where = indices.contiguous(format);
  const DenseOutput out(grad_input, format);
  kernels::max_pool_backward(stream_of(input), {geometry, to_dtype(grad.scalar_type()), grad.const_data_ptr(),
                                                out.data(), const_cast<int64_t*>(where.const_data_ptr<int64_t>())});
  out.settle();
}

void average(const Tensor& input, PoolGeometry geometry, int dims, bool count_include_pad,
             std::optional<int64_t> divisor, const Tensor& output) {
  if (output.numel() == 0) return;
  const auto format = format_of(input, dims);
  geometry.channels_last = format != at::MemoryFormat::Contiguous;
  const Tensor dense = input.contiguous(format);
  const DenseOutput out(output, format);
  kernels::average_pool(stream_of(input), {geometry, to_dtype(input.scalar_type()), dense.const_data_ptr(), out.data(),
                                           count_include_pad, divisor.value_or(0)});
  out.settle();
}

void average_backward(const Tensor& grad_output, const Tensor& input, PoolGeometry geometry, int dims,
                      bool count_include_pad, std::optional<int64_t> divisor, const Tensor& grad_input) {
  if (grad_input.numel() == 0) return;
  if (grad_output.numel() == 0) {
    grad_input.zero_();
    return;
  }
  const auto format = format_of(input, dims);
  geometry.channels_last = format != at::MemoryFormat::Contiguous;
  const Tensor grad = grad_output.contiguous(format);
  const DenseOutput out(grad_input, format);
  kernels::average_pool_backward(stream_of(input), {geometry, to_dtype(grad.scalar_type()), grad.const_data_ptr(),
                                                    out.data(), count_include_pad, divisor.value_or(0)});
  out.settle();
}

}  // namespace mybackend::aten::pool
