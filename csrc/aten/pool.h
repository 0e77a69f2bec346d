// What pooling operators share: geometry and dense arrays for csrc/kernels/pool.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "csrc/kernels/pool.h"

namespace mybackend::aten::pool {

// Parameters of an ordinary pooling over `dims` dimensions; a single value stands for all, no stride for the kernel's.
struct Window {
  at::IntArrayRef kernel, stride, padding, dilation;
};

kernels::PoolGeometry geometry(const at::Tensor& input, const at::Tensor& output, int dims, const Window& window);
kernels::PoolGeometry adaptive_geometry(const at::Tensor& input, const at::Tensor& output, int dims);

// The format in which a pooling of `input` runs: channels_last when it is batched and lies so.
at::MemoryFormat format_of(const at::Tensor& input, int dims);

// An output as a kernel writes it, dense in `format`: the tensor itself when it is, else a copy that `settle` brings
// back.
class DenseOutput {
 public:
  DenseOutput(const at::Tensor& out, at::MemoryFormat format);
  void* data() const { return dense_.mutable_data_ptr(); }
  int64_t* indices() const { return dense_.mutable_data_ptr<int64_t>(); }
  void settle() const;

 private:
  const at::Tensor& out_;
  at::Tensor dense_;
};

void max(const at::Tensor& input, kernels::PoolGeometry geometry, int dims, const at::Tensor& output,
         const at::Tensor& indices);
void max_backward(const at::Tensor& grad_output, const at::Tensor& input, const at::Tensor& indices,
                  kernels::PoolGeometry geometry, int dims, const at::Tensor& grad_input);
void average(const at::Tensor& input, kernels::PoolGeometry geometry, int dims, bool count_include_pad,
             std::optional<int64_t> divisor, const at::Tensor& output);
void average_backward(const at::Tensor& grad_output, const at::Tensor& input, kernels::PoolGeometry geometry, int dims,
                      bool count_include_pad, std::optional<int64_t> divisor, const at::Tensor& grad_input);

}  // namespace mybackend::aten::pool
