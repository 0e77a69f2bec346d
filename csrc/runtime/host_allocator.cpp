#include "csrc/runtime/host_allocator.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/runtime/device.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/event.h"

namespace mybackend::runtime {
namespace {

struct HostBlock {
  void* data = nullptr;
  size_t size = 0;
  bool allocated = false;
  int pending_events = 0;
  std::vector<c10::Stream> used_on;
};

void free_host_block(void* context) noexcept;

class PinnedAllocator final : public at::HostAllocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &free_host_block, at::DeviceType::CPU};
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= size_t{1} << 62, "mybackend: cannot pin ", bytes, " bytes");
    const size_t size = std::bit_ceil(std::max<size_t>(bytes, 512));
    std::lock_guard<std::mutex> guard(mutex_);
    collect();
    auto& bin = free_[std::countr_zero(size)];
    HostBlock* block = nullptr;
    if (!bin.empty()) {
      block = bin.back();
      bin.pop_back();
    } else {
      block = pin(size);
    }
    block->allocated = true;
    stats_.active_requests.increase(1);
    stats_.active_bytes.increase(size);
    return {block->data, block, &free_host_block, at::DeviceType::CPU};
  }

  void free(HostBlock* block) {
    std::lock_guard<std::mutex> guard(mutex_);
    block->allocated = false;
    stats_.active_requests.decrease(1);
    stats_.active_bytes.decrease(block->size);
    for (const c10::Stream stream : block->used_on) {
      Event event;
      event.record(stream);
      pending_.emplace_back(std::move(event), block);
      block->pending_events++;
    }
    block->used_on.clear();
    if (block->pending_events == 0) free_[std::countr_zero(block->size)].push_back(block);
  }

  bool record_event(void* pointer, void* context, c10::Stream stream) override {
    std::lock_guard<std::mutex> guard(mutex_);
    HostBlock* block = find(context, pointer);
    if (block == nullptr) return false;
    if (std::find(block->used_on.begin(), block->used_on.end(), stream) == block->used_on.end())
      block->used_on.push_back(stream);
    return true;
  }

  void empty_cache() override {
    std::lock_guard<std::mutex> guard(mutex_);
    collect();
    for (auto& bin : free_) {
      for (HostBlock* block : bin) unpin(block);
      bin.clear();
    }
  }

  void copy_data(void* destination, const void* source, std::size_t bytes) const override {
    default_copy_data(destination, source, bytes);
  }

  at::HostStats get_stats() override {
    std::lock_guard<std::mutex> guard(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard<std::mutex> guard(mutex_);
    for (auto* stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations, &stats_.allocated_bytes})
      stat->reset_accumulated();
    stats_.host_alloc_time.reset_accumulated();
    stats_.host_free_time.reset_accumulated();
    stats_.num_host_alloc = stats_.num_host_free = 0;
  }
  void reset_peak_stats() override {
    std::lock_guard<std::mutex> guard(mutex_);
    for (auto* stat : {&stats_.active_requests, &stats_.active_bytes, &stats_.allocations, &stats_.allocated_bytes})
      stat->reset_peak();
    stats_.host_alloc_time.reset_peak();
    stats_.host_free_time.reset_peak();
  }

  std::mutex& mutex() { return mutex_; }  // taken around fork

 private:
  using Clock = std::chrono::steady_clock;
  static int64_t microseconds_since(Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
  }

  HostBlock* pin(size_t size) {
    mark_context(current_device());
    const auto start = Clock::now();
    void* data = nullptr;
    MB_DEVICE_CHECK(device::api().host_alloc(&data, size));
    auto block = std::make_unique<HostBlock>();
    block->data = data;
    block->size = size;
    stats_.allocations.increase(1);
    stats_.allocated_bytes.increase(size);
    stats_.host_alloc_time.increase(microseconds_since(start));
    stats_.num_host_alloc++;
    return (blocks_[data] = std::move(block)).get();
  }

  void unpin(HostBlock* block) {
    const auto start = Clock::now();
    MB_DEVICE_CHECK(device::api().host_free(block->data));
    stats_.allocations.decrease(1);
    stats_.allocated_bytes.decrease(block->size);
    stats_.host_free_time.increase(microseconds_since(start));
    stats_.num_host_free++;
    blocks_.erase(block->data);
  }

  void collect() {
    while (!pending_.empty() && pending_.front().first.query()) {
      HostBlock* block = pending_.front().second;
      pending_.pop_front();
      if (--block->pending_events == 0) free_[std::countr_zero(block->size)].push_back(block);
    }
  }

  // By the context of a DataPtr of ours, else by an address inside the block.
  HostBlock* find(void* context, void* pointer) {
    const auto after = blocks_.upper_bound(pointer);
    if (after == blocks_.begin()) return nullptr;
    HostBlock* block = std::prev(after)->second.get();
    if (block == context || static_cast<char*>(pointer) < static_cast<char*>(block->data) + block->size) return block;
    return nullptr;
  }

  std::mutex mutex_;
  std::map<void*, std::unique_ptr<HostBlock>> blocks_;
  std::vector<HostBlock*> free_[64];  // by the logarithm of the size
  std::deque<std::pair<Event, HostBlock*>> pending_;
  at::HostStats stats_;
};

PinnedAllocator& pinned() {
  static PinnedAllocator* the_allocator = [] {
    auto* made = new PinnedAllocator;
    pthread_atfork([] { pinned().mutex().lock(); }, [] { pinned().mutex().unlock(); },
                   [] { pinned().mutex().unlock(); });
    return made;
  }();
  return *the_allocator;
}

// Runs in destructors: a failure leaves the block unused and is not raised.
void free_host_block(void* context) noexcept {
  if (context == nullptr) return;
  try {
    pinned().free(static_cast<HostBlock*>(context));
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("mybackend: pinned memory could not be given back: ", error.what());
  }
}

}  // namespace

at::HostAllocator& host_allocator() {
  return pinned();
}

bool is_pinned(const void* pointer) {
  if (!any_context()) return false;
  device::PointerAttributes attributes{};
  if (device::api().pointer_get_attributes(&attributes, pointer) != device::Status::Success) {
    static_cast<void>(device::api().get_last_error());
    return false;
  }
  return attributes.type == device::PointerAttributes::Type::Host;
}

bool record_host_event(const c10::DataPtr& pointer, c10::Stream stream) {
  return pinned().record_event(pointer.get(), pointer.get_context(), stream);
}

}  // namespace mybackend::runtime

REGISTER_HOST_ALLOCATOR(c10::DeviceType::PrivateUse1, &mybackend::runtime::host_allocator())
