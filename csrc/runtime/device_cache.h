// DeviceCache: the caching allocator of one device.
//
// Invariants
//   C1  a block is in exactly one state: handed out, pending (freed by the user, still used by another stream), free
//   C2  free neighbours are merged: two free blocks of a segment are never adjacent
//   C3  memory goes back to the driver only as a whole segment that is one free block, and after the device is idle
//   C4  a pending block becomes free when every event recorded for its other streams has happened
//   C5  during capture no event is recorded or waited for; frees that need one are put off until capture ends
//   C6  an adopted segment, made by another allocator, goes back to it once it is free and the device is idle, but
//       never after a graph was captured, whose replays may still read it. What could not go back is cached like any
//       other segment, and while there is such a segment no other is adopted
//
// Threads. Every public function takes the lock; it is never held while Python or user code runs. Order: GIL, then this
// lock, then the driver's own.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/runtime/block_pool.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/event.h"
#include "csrc/runtime/lock.h"
#include "csrc/runtime/memory_stats.h"

namespace mybackend::runtime {

class DeviceCache {
 public:
  explicit DeviceCache(DeviceIndex device) : device_(device) {}

  DeviceIndex device() const { return device_; }

  // Raises c10::OutOfMemoryError when the driver has no memory left even after the cache was given back.
  Block* allocate(size_t bytes, device::Stream stream);
  void free(Block* block);
  // The block of memory that another allocator has made, host driver only; `memory` is left to the caller, and nullptr
  // returned, when it cannot be adopted. Precondition: at least kRounding bytes.
  Block* adopt(c10::DataPtr& memory, size_t bytes, device::Stream stream);
  void record_stream(Block* block, c10::Stream stream);

  // Gives free segments back: of one private pool, or of all pools when the id is {0, 0}.
  void empty_cache(c10::MempoolId_t pool);
  // Largest share of the device's memory this process may reserve.
  void set_memory_fraction(double fraction);
  double memory_fraction();

  // Between begin and end, allocations for streams that pass `filter` are made in the private pool, whose memory is
  // kept until as many `release_pool` as `begin_allocate_to_pool` have been called.
  void begin_allocate_to_pool(c10::MempoolId_t pool, std::function<bool(device::Stream)> filter);
  void end_allocate_to_pool(c10::MempoolId_t pool);
  void release_pool(c10::MempoolId_t pool);

  c10::CachingDeviceAllocator::DeviceStats stats();
  void reset_peak_stats();
  void reset_accumulated_stats();
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> snapshot();
  // What the profiler is told with each allocation.
  size_t allocated_bytes() const { return static_cast<size_t>(counters_.allocated_bytes()); }
  size_t reserved_bytes() const { return static_cast<size_t>(counters_.reserved_bytes()); }

  Lock& lock() { return lock_; }  // taken around fork

 private:
  struct Pending {
    Event event;
    Block* block;
  };
  struct Capture {
    PoolOwner* owner;
    std::function<bool(device::Stream)> filter;
  };

  PoolOwner* owner_for(device::Stream stream);
  StreamPool* pool_for(PoolOwner* owner, device::Stream stream, bool small);
  PoolOwner* private_pool(c10::MempoolId_t id);
  Block* take(StreamPool* pool, size_t size);
  Block* grow(StreamPool* pool, size_t size);
  void split(Block* block, size_t size);
  void put_back(Block* block);
  void absorb(Block* block, Block* neighbour);
  bool collect(bool wait);  // C4; true if something became free
  void record_pending(Block* block);
  void release_segments(const PoolOwner* only);
  void release_segment(Block* block);
  void forget_segment(Block* block);
  bool given_back(Block* block);  // C6
  [[noreturn]] void out_of_memory(size_t size, std::unique_lock<Lock>& guard);
  Block* new_block();
  void recycle(Block* block);

  const DeviceIndex device_;
  Lock lock_;
  PoolOwner program_;  // id {0, 0}
  std::vector<std::unique_ptr<StreamPool>> pools_;
  StreamPool* last_pool_[2] = {nullptr, nullptr};  // of the program's last allocation: large, small
  std::map<c10::MempoolId_t, std::unique_ptr<PoolOwner>> private_pools_;
  std::vector<Capture> captures_;
  std::deque<Pending> pending_;
  std::vector<Block*> put_off_;  // C5
  std::set<Block*> segments_;    // the first block of each
  std::vector<Block*> kept_;     // C6: adopted segments that could not go back
  bool captured_ = false;        // an allocation was ever made for a graph
  Block* unused_ = nullptr;      // Block objects to use again, linked by bin_next
  std::deque<Block> storage_;    // where Block objects live
  double fraction_ = 1.0;
  size_t limit_ = SIZE_MAX;
  MemoryCounters counters_;
};

}  // namespace mybackend::runtime
