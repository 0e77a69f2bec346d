#include "csrc/engine/accumulate.h"

#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/record_function.h>
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

// Small sums are added here, since the way to at::add and back costs far more than the addition: only where nobody
// could tell the difference, as by a mode, a subclass or a profiler.

constexpr int64_t kSmall = 256;

// A dense tensor of the CPU in memory of its own, without a mode, a subclass or a lazy conjugation to its name, nor a
// tangent: forward differentiation keeps that in the tensor's autograd meta, and goes on where grad mode is off.
bool is_plain(const Tensor& tensor) {
  constexpr c10::DispatchKeySet kPlain({c10::DispatchKey::CPU, c10::DispatchKey::ADInplaceOrView,
                                        c10::DispatchKey::AutogradCPU, c10::DispatchKey::AutocastCPU});
  return tensor.key_set() == kPlain && tensor.unsafeGetTensorImpl()->autograd_meta() == nullptr &&
         tensor.is_contiguous() && tensor.numel() <= kSmall;
}

bool nobody_watches() {
  return c10::impl::tls_local_dispatch_key_set().included_ == c10::default_included_set && !at::hasCallbacks();
}

template <class T>
void add(Tensor& sum, const Tensor& a, const Tensor& b) {
  T* const out = static_cast<T*>(sum.unsafeGetTensorImpl()->mutable_data());
  const T* const x = static_cast<const T*>(a.const_data_ptr());
  const T* const y = static_cast<const T*>(b.const_data_ptr());
  const int64_t count = sum.numel();
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

bool add_small(Tensor& sum, Tensor& gradient) {
  if (!is_plain(sum) || !is_plain(gradient) || sum.scalar_type() != gradient.scalar_type()) return false;
  const at::ScalarType type = sum.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || sum.sizes() != gradient.sizes() ||
      sum.strides() != gradient.strides() || !nobody_watches()) {
    return false;
  }
  Tensor result = only_ours(sum)        ? sum
                  : only_ours(gradient) ? gradient
                                        : Tensor(at::detail::empty_cpu(sum.sizes(), type));
  if (type == at::kFloat) {
    add<float>(result, sum, gradient);
  } else {
    add<double>(result, sum, gradient);
  }
  sum = std::move(result);
  return true;
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
  const bool in_place = !at::GradMode::is_enabled();
  if (in_place && add_small(sum, gradient)) return;
  c10::OptionalDeviceGuard guard;
  if (!sum.device().is_cpu()) guard.reset_device(sum.device());
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
