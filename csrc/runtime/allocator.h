// The device allocator torch sees: one DeviceCache for each device behind c10::DeviceAllocator.
//
// The context of a DataPtr is its Block, so that freeing needs no look-up. Never destroyed: storages that live until
// the process ends free into it.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
#include <string>
#include <vector>

#include "csrc/runtime/device_cache.h"

namespace mybackend::runtime {

class Allocator final : public c10::DeviceAllocator {
 public:
  Allocator();

  // On the current device and its current stream.
  c10::DataPtr allocate(size_t bytes) override;
  c10::DataPtr allocate_on(size_t bytes, DeviceIndex device);
  // Memory that libtorch's CPU allocator has made, as memory of the device and its current stream: for results of CPU
  // operators under the host driver. An empty pointer, and `memory` is left as it was, when it cannot be adopted.
  c10::DataPtr adopt(c10::DataPtr& memory, size_t bytes, DeviceIndex device);
  bool is_simple_data_ptr(const c10::DataPtr& pointer) const override;
  void copy_data(void* destination, const void* source, size_t bytes) const override;

  bool initialized() override { return any_context(); }
  void emptyCache(c10::MempoolId_t pool = {0, 0}) override;
  void recordStream(const c10::DataPtr& pointer, c10::Stream stream) override;
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override;
  void resetAccumulatedStats(DeviceIndex device) override;
  void resetPeakStats(DeviceIndex device) override;
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override;

  // Memory without an owner, for caching_allocator_alloc/delete: known by its address.
  void* raw_alloc(size_t bytes, c10::Stream stream);
  void raw_delete(void* pointer);

  DeviceCache& cache(DeviceIndex device);
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> snapshot();

 private:
  DeviceCache* caches_[kMaxDevices];
};

Allocator& allocator();

// The memory may be in use on `stream` after its owner has dropped it. No-op for memory that is not of this allocator.
inline void record_stream(const c10::DataPtr& pointer, c10::Stream stream) {
  allocator().recordStream(pointer, stream);
}

}  // namespace mybackend::runtime
