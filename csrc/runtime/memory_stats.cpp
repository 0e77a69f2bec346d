#include "csrc/runtime/memory_stats.h"

#include <limits>

namespace mybackend::runtime {
namespace {

using c10::CachingAllocator::StatArray;

void raise(int64_t (&peak)[3], const Quantity& handed_out, const Quantity& pending) {
  peak[Quantity::kAll] = std::max(peak[Quantity::kAll], handed_out.current() + pending.current());
  for (const bool small : {false, true}) {
    int64_t& of_pool = peak[small ? Quantity::kSmall : Quantity::kLarge];
    of_pool = std::max(of_pool, handed_out.current(small) + pending.current(small));
  }
}

StatArray active(const Quantity& handed_out, const Quantity& pending, const int64_t (&peak)[3]) {
  StatArray stats = handed_out.stats();
  const StatArray waiting = pending.stats();
  for (size_t type = 0; type < stats.size(); type++) {
    stats[type].current += waiting[type].current;
    stats[type].peak = std::max({stats[type].peak, peak[type], stats[type].current});
    stats[type].freed -= waiting[type].current;
  }
  return stats;
}

}  // namespace

void MemoryCounters::raise_active_peaks() {
  raise(active_count_peak_, handed_out_.count, pending_.count);
  raise(active_bytes_peak_, handed_out_.bytes, pending_.bytes);
}

c10::CachingDeviceAllocator::DeviceStats MemoryCounters::stats() const {
  c10::CachingDeviceAllocator::DeviceStats stats;
  stats.allocation = handed_out_.count.stats();
  stats.allocated_bytes = handed_out_.bytes.stats();
  stats.active = active(handed_out_.count, pending_.count, active_count_peak_);
  stats.active_bytes = active(handed_out_.bytes, pending_.bytes, active_bytes_peak_);
  stats.inactive_split = inactive_split_.count.stats();
  stats.inactive_split_bytes = inactive_split_.bytes.stats();
  stats.segment = segments_.count.stats();
  stats.reserved_bytes = segments_.bytes.stats();
  stats.requested_bytes = requested_.stats();
  stats.num_alloc_retries = retries_;
  stats.num_ooms = ooms_;
  stats.num_sync_all_streams = stream_syncs_;
  stats.num_device_alloc = device_mallocs_;
  stats.num_device_free = device_frees_;
  stats.max_split_size = -1;  // no limit, as upstream reports it
  return stats;
}

void MemoryCounters::reset_peak() {
  for (Tally* tally : {&handed_out_, &pending_, &inactive_split_, &segments_}) tally->reset_peak();
  requested_.reset_peak();
  std::fill(std::begin(active_count_peak_), std::end(active_count_peak_), 0);
  std::fill(std::begin(active_bytes_peak_), std::end(active_bytes_peak_), 0);
  raise_active_peaks();
}

void MemoryCounters::reset_accumulated() {
  for (Tally* tally : {&handed_out_, &pending_, &inactive_split_, &segments_}) tally->reset_accumulated();
  requested_.reset_accumulated();
  retries_ = ooms_ = stream_syncs_ = device_mallocs_ = device_frees_ = 0;
}

}  // namespace mybackend::runtime
