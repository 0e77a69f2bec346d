// MemoryCounters: upstream's allocator statistics, kept so that the fast path touches few words.
//
// Upstream keeps (current, peak, allocated, freed) for each quantity three times: all, small pool, large pool. Here a
// quantity keeps current, allocated and peak for each pool and one more peak for their sum; `all` and `freed` follow:
//   all.current = small.current + large.current           freed = allocated - (current - current at the last reset)
// "active" blocks are those handed out plus those pending; only the pending ones are counted apart, and the peak of the
// sum is tracked only while some are pending (otherwise it equals the peak of those handed out).
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace mybackend::runtime {

class Quantity {
 public:
  void add(bool small, int64_t amount) {
    PerPool& pool = pool_[small];
    const int64_t now = change(small, amount);
    pool.allocated += amount;
    pool.peak = std::max(pool.peak, now);
    peak_ = std::max(peak_, current());
  }
  void subtract(bool small, int64_t amount) { change(small, -amount); }

  int64_t current() const { return current(false) + current(true); }
  int64_t current(bool small) const { return pool_[small].current.load(std::memory_order_relaxed); }

  void reset_peak() {
    for (const bool small : {false, true}) pool_[small].peak = current(small);
    peak_ = current();
  }
  void reset_accumulated() {
    for (const bool small : {false, true}) {
      pool_[small].allocated = 0;
      pool_[small].base = current(small);
    }
  }

  c10::CachingAllocator::StatArray stats() const {
    c10::CachingAllocator::StatArray stats;
    for (const bool small : {false, true}) {
      c10::CachingAllocator::Stat& stat = stats[small ? kSmall : kLarge];
      const PerPool& pool = pool_[small];
      stat.current = current(small);
      stat.peak = pool.peak;
      stat.allocated = pool.allocated;
      stat.freed = pool.allocated - (stat.current - pool.base);
    }
    c10::CachingAllocator::Stat& all = stats[kAll];
    all.current = current();
    all.peak = peak_;
    all.allocated = stats[kSmall].allocated + stats[kLarge].allocated;
    all.freed = stats[kSmall].freed + stats[kLarge].freed;
    return stats;
  }

  static constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  static constexpr size_t kSmall = static_cast<size_t>(c10::CachingAllocator::StatType::SMALL_POOL);
  static constexpr size_t kLarge = static_cast<size_t>(c10::CachingAllocator::StatType::LARGE_POOL);

 private:
  // One thread at a time changes it, under the cache's lock, so no read-modify-write is needed.
  int64_t change(bool small, int64_t by) {
    const int64_t now = current(small) + by;
    pool_[small].current.store(now, std::memory_order_relaxed);
    return now;
  }

  struct PerPool {
    std::atomic<int64_t> current{0};  // also read without the lock
    int64_t peak = 0;
    int64_t allocated = 0;
    int64_t base = 0;
  };
  PerPool pool_[2];  // large, small
  int64_t peak_ = 0;
};

// Count and bytes of blocks in one state.
struct Tally {
  Quantity count, bytes;
  void add(bool small, size_t size) {
    count.add(small, 1);
    bytes.add(small, static_cast<int64_t>(size));
  }
  void subtract(bool small, size_t size) {
    count.subtract(small, 1);
    bytes.subtract(small, static_cast<int64_t>(size));
  }
  void reset_peak() {
    count.reset_peak();
    bytes.reset_peak();
  }
  void reset_accumulated() {
    count.reset_accumulated();
    bytes.reset_accumulated();
  }
};

class MemoryCounters {
 public:
  void allocated(bool small, size_t size, size_t requested) {
    handed_out_.add(small, size);
    requested_.add(small, static_cast<int64_t>(requested));
    if (pending_.count.current() != 0) [[unlikely]]
      raise_active_peaks();
  }
  void freed(bool small, size_t size, size_t requested) {
    handed_out_.subtract(small, size);
    requested_.subtract(small, static_cast<int64_t>(requested));
  }
  // A freed block that another stream still uses; call before `freed`, so that the sum does not dip.
  void became_pending(bool small, size_t size) { pending_.add(small, size); }
  void no_longer_pending(bool small, size_t size) { pending_.subtract(small, size); }
  void became_inactive_split(bool small, size_t size) { inactive_split_.add(small, size); }
  void left_inactive_split(bool small, size_t size) { inactive_split_.subtract(small, size); }
  void segment_made(bool small, size_t size) {
    segments_.add(small, size);
    device_mallocs_++;
  }
  void segment_released(bool small, size_t size) {
    segments_.subtract(small, size);
    device_frees_++;
  }
  void segment_adopted(bool small, size_t size) { segments_.add(small, size); }
  void segment_given_back(bool small, size_t size) { segments_.subtract(small, size); }
  void retried() { retries_++; }
  void ran_out() { ooms_++; }
  void waited_for_streams() { stream_syncs_++; }

  int64_t allocated_bytes() const { return handed_out_.bytes.current(); }
  int64_t reserved_bytes() const { return segments_.bytes.current(); }

  c10::CachingDeviceAllocator::DeviceStats stats() const;
  void reset_peak();
  void reset_accumulated();

 private:
  void raise_active_peaks();

  Tally handed_out_, pending_, inactive_split_, segments_;
  Quantity requested_;
  int64_t active_count_peak_[3] = {}, active_bytes_peak_[3] = {};  // by StatType, while blocks were pending
  int64_t retries_ = 0, ooms_ = 0, stream_syncs_ = 0, device_mallocs_ = 0, device_frees_ = 0;
};

}  // namespace mybackend::runtime
