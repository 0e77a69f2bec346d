// From tensors and iterators to Reduction: what every reduction does before it calls a kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>

#include "csrc/device/reduction.h"

namespace mybackend::aten {

// The iterator's outputs (one or two) and its input; reduced dimensions are those in which the outputs do not move.
Reduction reduction_of(const at::TensorIteratorBase& iter);

// `self` over dimension `dim`, or over all of them; outputs have the shape this leaves, with or without the reduced
// dimension. An undefined output is left out.
Reduction reduction_over(const at::Tensor& self, std::optional<int64_t> dim, const at::Tensor& out0,
                         const at::Tensor& out1 = {});

// Memory for partial results on the current device and stream; lives as long as this.
class DeviceWorkspace {
 public:
  operator Workspace() { return {this, &take}; }

 private:
  static char* take(void* self, int64_t bytes);
  at::Tensor memory_;
};

}  // namespace mybackend::aten
