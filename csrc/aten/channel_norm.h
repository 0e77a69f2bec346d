// Small helpers of batch norm and group norm.
#pragma once

#include <ATen/core/Tensor.h>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/kernels/channel_norm.h"

namespace mybackend::aten {

// One allocation of the current device, handed out piece by piece. Owns it: pieces live as long as the workspace.
class Workspace {
 public:
  Workspace(at::ScalarType type, int64_t elements)
      : buffer_(empty_on_current_device({elements}, type)), next_(static_cast<char*>(buffer_.mutable_data_ptr())) {}

  void* take(int64_t elements) {
    void* piece = next_;
    next_ += elements * static_cast<int64_t>(buffer_.itemsize());
    return piece;
  }

 private:
  at::Tensor buffer_;
  char* next_;
};

// Weights, biases and running statistics as kernels take them; contiguous, or undefined.
inline kernels::ChannelArray channel_array(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {const_cast<void*>(tensor.const_data_ptr()), to_dtype(tensor.scalar_type())};
}

}  // namespace mybackend::aten
