#include "csrc/aten/host_donation.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <set>

#include "csrc/aten/host_call.h"

namespace mybackend::aten {
namespace {

thread_local constinit Donation* offered = nullptr;

// Memory that was given away, for `release`; guarded by its lock.
std::mutex given_lock;
std::set<void*> given;

c10::DeleterFnPtr next_deleter = nullptr;

// Also the deleter of raw_allocate's callers, so it sees memory of either kind.
void release(void* memory) {
  {
    std::lock_guard<std::mutex> guard(given_lock);
    if (given.count(memory) != 0) return;
  }
  next_deleter(memory);
}

// Stands before the CPU allocator of the process; without a donation it only asks one thread-local pointer.
class DonatingAllocator final : public c10::Allocator {
 public:
  explicit DonatingAllocator(c10::Allocator* next) : next_(next) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (offered != nullptr) [[unlikely]] {
      if (void* memory = Donation::take(bytes))
        return c10::DataPtr(memory, memory, &release, c10::Device(c10::DeviceType::CPU));
    }
    return next_->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return next_deleter == nullptr ? nullptr : &release; }
  bool is_simple_data_ptr(const c10::DataPtr& pointer) const override { return next_->is_simple_data_ptr(pointer); }
  void copy_data(void* to, const void* from, size_t bytes) const override { next_->copy_data(to, from, bytes); }

 private:
  c10::Allocator* next_;
};

void stand_before_cpu_allocator() {
  [[maybe_unused]] static const bool once = [] {
    static DonatingAllocator allocator(c10::GetCPUAllocator());
    next_deleter = c10::GetCPUAllocator()->raw_deleter();
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
  std::lock_guard<std::mutex> guard(given_lock);
  for (size_t i = 0; i < count_; i++)
    if (taken_[i]) given.erase(tensors_[i].mutable_data_ptr());
}

void* Donation::take(size_t bytes) {
  Donation& donation = *offered;
  for (size_t i = 0; i < donation.count_; i++) {
    const at::Tensor& tensor = donation.tensors_[i];
    if (!donation.taken_[i] && tensor.defined() && tensor.nbytes() == bytes && bytes > 0) {
      donation.taken_[i] = true;
      std::lock_guard<std::mutex> guard(given_lock);
      return *given.insert(tensor.mutable_data_ptr()).first;
    }
  }
  return nullptr;
}

void Donation::settle(std::initializer_list<at::Tensor> results) {
  const auto is_given = [this](const at::Tensor& result) {
    for (size_t i = 0; i < count_; i++)
      if (taken_[i] && result.storage().data() == tensors_[i].mutable_data_ptr()) return true;
    return false;
  };
  std::array<at::Tensor, kMost> misplaced;
  size_t i = 0;
  for (const at::Tensor& result : results) {
    const at::Tensor& tensor = tensors_[i];
    const bool settled = !tensor.defined() ||
                         (result.const_data_ptr() == tensor.const_data_ptr() && result.strides() == tensor.strides());
    // Copying one result may overwrite another: those that lie in given memory move out of it first.
    if (!settled) misplaced[i] = is_given(result) ? result.clone() : result;
    i++;
  }
  for (i = 0; i < count_; i++)
    if (misplaced[i].defined()) tensors_[i].copy_(misplaced[i]);
}

}  // namespace mybackend::aten
