#include "csrc/runtime/device_cache.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {
namespace {

size_t rounded(size_t bytes) {
  return bytes < kRounding ? kRounding : (bytes + kRounding - 1) / kRounding * kRounding;
}

size_t segment_size(size_t size) {
  if (size <= kSmallLimit) return kSmallSegment;
  if (size < kMinLargeRequest) return kLargeSegment;
  return (size + kLargeRounding - 1) / kLargeRounding * kLargeRounding;
}

// What is left of a block after `size` bytes are cut off is worth a block of its own.
bool worth_splitting(const Block* block, size_t size) {
  const size_t left = block->size - size;
  return block->pool->small ? left >= kRounding : left > kSmallLimit;
}

}  // namespace

Block* DeviceCache::allocate(size_t bytes, device::Stream stream) {
  constexpr size_t kExabyte = size_t{1} << 60;
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < kExabyte,
                   "mybackend out of memory. Tried to allocate more than 1EB memory.");
  const size_t size = rounded(bytes);
  const bool small = size <= kSmallLimit;
  std::unique_lock<Lock> guard(lock_);
  if (!pending_.empty() || !put_off_.empty()) [[unlikely]]
    collect(false);

  StreamPool* pool = last_pool_[small];
  if (pool == nullptr || pool->stream != stream || !captures_.empty()) [[unlikely]]
    pool = pool_for(owner_for(stream), stream, small);
  Block* block = take(pool, size);
  if (block == nullptr) [[unlikely]] {
    block = grow(pool, size);
    if (block == nullptr) out_of_memory(bytes, guard);
  }
  if (worth_splitting(block, size)) split(block, size);
  block->allocated = true;
  block->requested = bytes;
  counters_.allocated(small, block->size, bytes);
  return block;
}

// A free block of the pool, no longer in its free list.
Block* DeviceCache::take(StreamPool* pool, size_t size) {
  Block* block = pool->best_fit(size);
  if (block == nullptr) return nullptr;
  pool->erase(block);
  if (block->is_split()) counters_.left_inactive_split(pool->small, block->size);
  return block;
}

// A new segment as one block, after giving cached memory back if need be; nullptr when the driver has none.
Block* DeviceCache::grow(StreamPool* pool, size_t size) {
  mark_context(device_);
  const size_t wanted = segment_size(size);
  DeviceScope scope(device_);
  const device::Api& api = device::api();
  void* data = nullptr;
  const auto attempt = [&] {
    if (reserved_bytes() + wanted > limit_) return device::Status::OutOfMemory;
    return api.malloc(&data, wanted);
  };
  device::Status status = attempt();
  if (status == device::Status::OutOfMemory) {
    static_cast<void>(api.get_last_error());
    // First what other streams have finished with: it may already hold a block that fits.
    if (captures_.empty()) {
      counters_.retried();
      collect(true);
      if (Block* block = take(pool, size)) return block;
      release_segments(nullptr);
      status = attempt();
    }
    if (status == device::Status::OutOfMemory) {
      static_cast<void>(api.get_last_error());
      return nullptr;
    }
  }
  MB_DEVICE_CHECK(status);
  Block* block = new_block();
  block->data = data;
  block->size = wanted;
  block->pool = pool;
  segments_.insert(block);
  pool->owner->reserved += wanted;
  counters_.segment_made(pool->small, wanted);
  return block;
}

// Leaves `size` bytes in `block`; the rest becomes a free block after it.
void DeviceCache::split(Block* block, size_t size) {
  Block* rest = new_block();
  rest->data = static_cast<char*>(block->data) + size;
  rest->size = block->size - size;
  rest->pool = block->pool;
  rest->previous = block;
  rest->next = block->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  block->next = rest;
  block->size = size;
  block->pool->insert(rest);
  counters_.became_inactive_split(block->pool->small, rest->size);
}

void DeviceCache::free(Block* block) {
  std::lock_guard<Lock> guard(lock_);
  block->allocated = false;
  const bool small = block->pool->small;
  if (block->used_on != nullptr) [[unlikely]] {
    counters_.became_pending(small, block->size);
    counters_.freed(small, block->size, block->requested);
    if (captures_.empty())
      record_pending(block);
    else
      put_off_.push_back(block);
    return;
  }
  counters_.freed(small, block->size, block->requested);
  put_back(block);
}

// A block nobody uses goes to its free list, merged with free neighbours (C2).
void DeviceCache::put_back(Block* block) {
  const bool small = block->pool->small;
  const auto is_free = [](const Block* neighbour) { return neighbour != nullptr && neighbour->is_free(); };
  if (is_free(block->next)) absorb(block, block->next);
  if (is_free(block->previous)) {
    // The earlier block takes over: the first block of a segment stays the same object (segments_).
    Block* first = block->previous;
    first->pool->erase(first);
    counters_.left_inactive_split(small, first->size);
    first->size += block->size;
    first->next = block->next;
    if (first->next != nullptr) first->next->previous = first;
    recycle(block);
    block = first;
  }
  if (block->adopted && given_back(block)) return;
  block->pool->insert(block);
  if (block->is_split()) counters_.became_inactive_split(small, block->size);
}

void DeviceCache::absorb(Block* block, Block* neighbour) {
  neighbour->pool->erase(neighbour);
  counters_.left_inactive_split(neighbour->pool->small, neighbour->size);
  block->size += neighbour->size;
  block->next = neighbour->next;
  if (block->next != nullptr) block->next->previous = block;
  recycle(neighbour);
}

void DeviceCache::record_stream(Block* block, c10::Stream stream) {
  std::lock_guard<Lock> guard(lock_);
  if (stream.device_index() == device_ && handle_of(stream) == block->pool->stream) return;
  if (block->used_on == nullptr) block->used_on = std::make_unique<std::vector<c10::Stream>>();
  std::vector<c10::Stream>& streams = *block->used_on;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

void DeviceCache::record_pending(Block* block) {
  const std::unique_ptr<std::vector<c10::Stream>> streams = std::move(block->used_on);
  for (const c10::Stream stream : *streams) {
    Event event;
    event.record(stream);
    block->pending_events++;
    pending_.push_back({std::move(event), block});
  }
}

bool DeviceCache::collect(bool wait) {
  if (!captures_.empty()) return false;  // C5
  for (Block* block : put_off_) record_pending(block);
  put_off_.clear();
  if (wait && !pending_.empty()) counters_.waited_for_streams();
  bool freed = false;
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    if (wait)
      MB_DEVICE_CHECK(device::api().event_synchronize(entry->event.handle()));
    else if (!entry->event.query()) {
      ++entry;
      continue;
    }
    Block* block = entry->block;
    entry = pending_.erase(entry);
    if (--block->pending_events > 0) continue;
    counters_.no_longer_pending(block->pool->small, block->size);
    put_back(block);
    freed = true;
  }
  return freed;
}

void DeviceCache::empty_cache(c10::MempoolId_t pool) {
  std::lock_guard<Lock> guard(lock_);
  if (segments_.empty() || !captures_.empty()) return;
  collect(true);
  if (pool == c10::MempoolId_t{0, 0}) return release_segments(nullptr);
  if (const auto found = private_pools_.find(pool); found != private_pools_.end())
    release_segments(found->second.get());
}

// Gives wholly free segments back (C3): of `only`, or of every pool that no graph holds.
void DeviceCache::release_segments(const PoolOwner* only) {
  std::vector<Block*> free;
  for (const auto& pool : pools_) {
    if (only != nullptr ? pool->owner != only : pool->owner->users > 0) continue;
    pool->for_each_free([&](Block* block) {
      if (!block->is_split()) free.push_back(block);
    });
  }
  if (free.empty()) return;
  DeviceScope scope(device_);
  MB_DEVICE_CHECK(device::api().device_synchronize());
  for (Block* block : free) release_segment(block);
}

void DeviceCache::release_segment(Block* block) {
  MB_DEVICE_CHECK(device::api().free(block->data));
  block->pool->erase(block);
  std::erase(kept_, block);
  forget_segment(block);
}

// The segment of one free block, whose memory has gone and which is in no free list.
void DeviceCache::forget_segment(Block* block) {
  StreamPool* pool = block->pool;
  segments_.erase(block);
  pool->owner->reserved -= block->size;
  if (block->adopted)
    counters_.segment_given_back(pool->small, block->size);
  else
    counters_.segment_released(pool->small, block->size);
  recycle(block);
}

void DeviceCache::out_of_memory(size_t size, std::unique_lock<Lock>& guard) {
  using c10::CachingAllocator::format_size;
  counters_.ran_out();
  const size_t allocated = allocated_bytes();
  const size_t reserved = reserved_bytes();
  const double fraction = fraction_;
  const size_t limit = limit_;
  guard.unlock();
  DeviceScope scope(device_);
  size_t free = 0, total = 0;
  MB_DEVICE_CHECK(device::api().mem_get_info(&free, &total));
  c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(size), allocated, reserved, c10::Device(kDeviceType, device_));
  const std::string allowed = limit == SIZE_MAX ? ""
                                                : c10::str(format_size(limit), " allowed; ",
                                                           "the fraction set for this process is ", fraction, ". ");
  TORCH_CHECK_WITH(OutOfMemoryError, false, "mybackend out of memory. Tried to allocate ", format_size(size),
                   ". Device ", static_cast<int>(device_), " has a total capacity of ", format_size(total),
                   " of which ", format_size(free), " is free. ", allowed, "Of the allocated memory ",
                   format_size(allocated), " is allocated by PyTorch, and ", format_size(reserved - allocated),
                   " is reserved by PyTorch but unallocated.");
}

void DeviceCache::set_memory_fraction(double fraction) {
  TORCH_CHECK_VALUE(fraction >= 0 && fraction <= 1, "Invalid fraction:", fraction, ". Please set within [0, 1].");
  DeviceScope scope(device_);
  size_t free = 0, total = 0;
  MB_DEVICE_CHECK(device::api().mem_get_info(&free, &total));
  std::lock_guard<Lock> guard(lock_);
  fraction_ = fraction;
  limit_ = fraction == 1.0 ? SIZE_MAX : static_cast<size_t>(fraction * static_cast<double>(total));
}

double DeviceCache::memory_fraction() {
  std::lock_guard<Lock> guard(lock_);
  return fraction_;
}

PoolOwner* DeviceCache::owner_for(device::Stream stream) {
  for (const Capture& capture : captures_)
    if (capture.filter(stream)) return capture.owner;
  return &program_;
}

StreamPool* DeviceCache::pool_for(PoolOwner* owner, device::Stream stream, bool small) {
  for (const auto& pool : pools_) {
    if (pool->owner != owner || pool->stream != stream || pool->small != small) continue;
    if (owner == &program_) last_pool_[small] = pool.get();
    return pool.get();
  }
  pools_.push_back(std::make_unique<StreamPool>(this, owner, stream, small));
  if (owner == &program_) last_pool_[small] = pools_.back().get();
  return pools_.back().get();
}

PoolOwner* DeviceCache::private_pool(c10::MempoolId_t id) {
  std::unique_ptr<PoolOwner>& pool = private_pools_[id];
  if (pool == nullptr) {
    pool = std::make_unique<PoolOwner>();
    pool->id = id;
  }
  return pool.get();
}

void DeviceCache::begin_allocate_to_pool(c10::MempoolId_t pool, std::function<bool(device::Stream)> filter) {
  std::lock_guard<Lock> guard(lock_);
  PoolOwner* owner = private_pool(pool);
  for (const Capture& capture : captures_)
    TORCH_CHECK(capture.owner != owner, "beginAllocateToPool: already recording to mempool_id");
  owner->users++;
  captured_ = true;
  captures_.push_back({owner, std::move(filter)});
}

void DeviceCache::end_allocate_to_pool(c10::MempoolId_t pool) {
  std::lock_guard<Lock> guard(lock_);
  const auto found =
      std::find_if(captures_.begin(), captures_.end(), [&](const Capture& c) { return c.owner->id == pool; });
  TORCH_CHECK(found != captures_.end(), "endAllocatePool: not currently recording to mempool_id");
  captures_.erase(found);
}

void DeviceCache::release_pool(c10::MempoolId_t pool) {
  std::lock_guard<Lock> guard(lock_);
  const auto found = private_pools_.find(pool);
  TORCH_CHECK(found != private_pools_.end() && found->second->users > 0, "releasePool: unknown mempool_id");
  found->second->users--;
}

c10::CachingDeviceAllocator::DeviceStats DeviceCache::stats() {
  std::lock_guard<Lock> guard(lock_);
  return counters_.stats();
}

void DeviceCache::reset_peak_stats() {
  std::lock_guard<Lock> guard(lock_);
  counters_.reset_peak();
}

void DeviceCache::reset_accumulated_stats() {
  std::lock_guard<Lock> guard(lock_);
  counters_.reset_accumulated();
}

std::vector<c10::CachingDeviceAllocator::SegmentInfo> DeviceCache::snapshot() {
  std::lock_guard<Lock> guard(lock_);
  std::vector<c10::CachingDeviceAllocator::SegmentInfo> segments;
  segments.reserve(segments_.size());
  for (const Block* first : segments_) {
    auto& segment = segments.emplace_back();
    segment.device = device_;
    segment.address = reinterpret_cast<size_t>(first->data);
    segment.stream = first->pool->stream;
    segment.is_large = !first->pool->small;
    segment.owner_private_pool_id = first->pool->owner->id;
    for (const Block* block = first; block != nullptr; block = block->next) {
      auto& info = segment.blocks.emplace_back();
      info.size = block->size;
      info.allocated = block->allocated;
      info.active = block->allocated || block->pending_events > 0 || block->used_on != nullptr;
      info.requested_size = info.active ? block->requested : 0;
      segment.total_size += info.size;
      segment.requested_size += info.requested_size;
      if (info.allocated) segment.allocated_size += info.size;
      if (info.active) segment.active_size += info.size;
    }
  }
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

Block* DeviceCache::new_block() {
  Block* block = unused_;
  if (block == nullptr) [[unlikely]]
    return &storage_.emplace_back();
  unused_ = block->bin_next;
  block->allocated = false;
  block->adopted = false;
  block->pending_events = 0;
  block->previous = nullptr;
  block->next = nullptr;
  return block;
}

void DeviceCache::recycle(Block* block) {
  block->bin_next = unused_;
  unused_ = block;
}

}  // namespace mybackend::runtime
