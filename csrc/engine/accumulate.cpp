#include "csrc/engine/accumulate.h"

#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <c10/core/DeviceGuard.h>

#include "csrc/engine/run.h"
#include "csrc/engine/trace.h"

namespace mybackend::engine {
namespace {

bool only_ours(const Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1;
}

bool can_take_sum(const Tensor& tensor) {
  return !at::isTensorSubclassLike(tensor) && !tensor._is_zerotensor() && !tensor.is_nested() &&
         tensor.is_non_overlapping_and_dense() && only_ours(tensor);
}

// Measures one addition for the record of the node that this thread runs, if it is observed.
struct SumTimer {
  SumTimer() : measures(this_thread().measures), begin(measures.wanted ? now_ns() : 0) {}
  ~SumTimer() {
    if (begin == 0) return;
    measures.sum_ns += now_ns() - begin;
    ++measures.sums;
  }
  Measures& measures;
  const int64_t begin;
};

}  // namespace

void accumulate_next(Tensor& sum, Tensor&& gradient) {
  const SumTimer timer;
  c10::OptionalDeviceGuard guard;
  if (!sum.device().is_cpu()) guard.reset_device(sum.device());
  const bool in_place = !at::GradMode::is_enabled();
  if (sum.is_sparse()) {
    // dense + sparse has a kernel, sparse + dense has none
    if (in_place && !gradient.is_sparse() && gradient.is_contiguous() && only_ours(gradient)) {
      gradient.add_(sum);
      sum = std::move(gradient);
    } else {
      sum = gradient + sum;
    }
  } else if (in_place && gradient.is_sparse() && sum.is_contiguous() && only_ours(sum)) {
    sum.add_(gradient);
  } else if (in_place && !gradient.is_sparse() && !gradient.is_sparse_csr() && can_take_sum(sum)) {
    sum.add_(gradient);
  } else if (in_place && !gradient.is_sparse() && !gradient.is_sparse_csr() && can_take_sum(gradient) &&
             sum.layout() == at::kStrided && sum.strides() == gradient.strides()) {  // as sum + gradient would have
    gradient.add_(sum);
    sum = std::move(gradient);
  } else {
    sum = sum + gradient;
  }
}

}  // namespace mybackend::engine
