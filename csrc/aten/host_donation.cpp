#include "csrc/aten/host_donation.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "csrc/aten/host_call.h"

namespace mybackend::aten {
namespace {

thread_local constinit Donation* offered = nullptr;

// Stands before the CPU allocator of the process; without a donation it only asks one thread-local pointer.
class DonatingAllocator final : public c10::Allocator {
 public:
  explicit DonatingAllocator(c10::Allocator* next) : next_(next) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (offered != nullptr) [[unlikely]] {
      if (void* memory = Donation::take(bytes)) return c10::DataPtr(memory, c10::Device(c10::DeviceType::CPU));
    }
    return next_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return next_->raw_deleter(); }
  bool is_simple_data_ptr(const c10::DataPtr& pointer) const override { return next_->is_simple_data_ptr(pointer); }
  void copy_data(void* to, const void* from, size_t bytes) const override { next_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* next_;
};

void stand_before_cpu_allocator() {
  [[maybe_unused]] static const bool once = [] {
    static DonatingAllocator allocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(&allocator, /*priority=*/255);
    return true;
  }();
}

}  // namespace

Donation::Donation(std::initializer_list<at::Tensor> tensors) : outer_(offered) {
  stand_before_cpu_allocator();
  TORCH_INTERNAL_ASSERT(tensors.size() <= kMost);
  for (const at::Tensor& tensor : tensors) tensors_[count_++] = tensor;
  offered = this;
}

Donation::~Donation() {
  offered = outer_;
}

void* Donation::take(size_t bytes) noexcept {
  Donation& donation = *offered;
  for (size_t i = 0; i < donation.count_; i++) {
    const at::Tensor& tensor = donation.tensors_[i];
    if (!donation.taken_[i] && tensor.defined() && tensor.nbytes() == bytes && bytes > 0) {
      donation.taken_[i] = true;
      return tensor.mutable_data_ptr();
    }
  }
  return nullptr;
}

void Donation::settle(size_t i, const at::Tensor& result) {
  const at::Tensor& tensor = tensors_[i];
  if (!tensor.defined()) return;
  const bool here = result.const_data_ptr() == tensor.const_data_ptr();
  if (here && result.strides() == tensor.strides()) return;
  tensor.copy_(here ? result.clone() : result);
}

}  // namespace mybackend::aten
