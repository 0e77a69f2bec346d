// Reductions without code that CPU and CUDA share: count_nonzero, equal, trace.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/eq.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/reduction.h"
#include "csrc/kernels/reductions.h"
#include "generated/reduce.h"

namespace mybackend::aten {

using at::Tensor;

Tensor count_nonzero_dim_IntList(const Tensor& self, at::IntArrayRef dim) {
  Tensor result = at::native::create_reduction_result(self, dim, /*keepdim=*/false, c10::kLong);
  if (self.numel() == 0) return result.zero_();
  at::TensorIterator iter =
      at::native::make_reduction("count_nonzero", result, self, dim, false, self.scalar_type(), c10::kLong);
  DeviceWorkspace workspace;
  kernels::reduce_count_nonzero(runtime::current_stream(self.device().index()), reduction_of(iter), workspace);
  return result;
}

bool equal(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(self.device() == other.device(), "Cannot compare two tensors on different devices. Got: ", self.device(),
              " and ", other.device());
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  return at::eq(self, other).all().item<bool>();
}

Tensor trace(const Tensor& self) {
  TORCH_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return self.diagonal().sum();
}

}  // namespace mybackend::aten
