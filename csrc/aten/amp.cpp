// Gradient scaling: what torch.amp.GradScaler asks of a device.
#include <ATen/core/Tensor.h>

#include "csrc/aten/foreach.h"
#include "csrc/kernels/foreach.h"
#include "generated/amp.h"

namespace mybackend::aten {

using at::Tensor;
using at::TensorList;

void _amp_foreach_non_finite_check_and_unscale_(TensorList scaled_grads, Tensor& found_inf, const Tensor& inv_scale) {
  if (scaled_grads.empty()) return;
  TORCH_CHECK(inv_scale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(inv_scale.scalar_type() == c10::kFloat, "inv_scale must be a float tensor.");
  TORCH_CHECK(found_inf.scalar_type() == c10::kFloat, "found_inf must be a float tensor.");
  for (const Tensor& grad : scaled_grads)
    TORCH_CHECK(grad.layout() == c10::kStrided, "one of scaled_grads was not a strided tensor.");
  float* const found = found_inf.mutable_data_ptr<float>();
  const float* const factor = inv_scale.const_data_ptr<float>();
  const auto unscale = [&](TensorList grads) {
    kernels::amp_unscale(lists::stream_of(grads), lists::Lists({grads}, 1), found, factor);
  };
  if (lists::takes_fast_route({scaled_grads}, {}, false, lists::kReal)) return unscale(scaled_grads);
  for (const Tensor& grad : scaled_grads) {
    if (grad.is_non_overlapping_and_dense()) {
      unscale(grad);
    } else {
      const Tensor dense = grad.contiguous();
      unscale(dense);
      grad.copy_(dense);
    }
  }
}

Tensor& _amp_update_scale_(Tensor& current_scale, Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                           double backoff_factor, int64_t growth_interval) {
  TORCH_CHECK(growth_tracker.numel() == 1, "growth_tracker must be a 1-element tensor.");
  TORCH_CHECK(growth_tracker.scalar_type() == c10::kInt, "growth_tracker must be an int tensor.");
  TORCH_CHECK(current_scale.numel() == 1, "current_scale must be a 1-element tensor.");
  TORCH_CHECK(current_scale.scalar_type() == c10::kFloat, "current_scale must be a float tensor.");
  TORCH_CHECK(found_inf.numel() == 1, "found_inf must be a 1-element tensor.");
  TORCH_CHECK(found_inf.scalar_type() == c10::kFloat, "found_inf must be a float tensor.");
  kernels::amp_update_scale(lists::stream_of(current_scale), current_scale.mutable_data_ptr<float>(),
                            growth_tracker.mutable_data_ptr<int>(), found_inf.const_data_ptr<float>(), growth_factor,
                            backoff_factor, growth_interval);
  return current_scale;
}

}  // namespace mybackend::aten
