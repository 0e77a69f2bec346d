// Adopted segments of the caching allocator (C6 of device_cache.h): memory that another allocator has made, on the host
// driver. Both functions run under the cache's lock, or take it.
#include <algorithm>

#include "csrc/device/host_memory.h"
#include "csrc/runtime/device_cache.h"

namespace mybackend::runtime {

Block* DeviceCache::adopt(c10::DataPtr& memory, size_t bytes, device::Stream stream) {
  // Rounded down: as a cached block it must not be longer than its memory.
  const size_t size = bytes / kRounding * kRounding;
  const bool small = size <= kSmallLimit;
  std::lock_guard<Lock> guard(lock_);
  if (captured_ || reserved_bytes() + size > limit_) return nullptr;
  const std::vector<Block*> kept = kept_;  // given_back takes from it
  for (Block* block : kept) {
    if (!block->is_free() || block->is_split()) continue;
    block->pool->erase(block);
    if (!given_back(block)) block->pool->insert(block);
  }
  if (!kept_.empty()) return nullptr;
  if (!device::host::adopt(device_, memory.get(), bytes, memory.get_deleter(), memory.get_context())) return nullptr;
  memory.release_context();
  Block* block = new_block();
  block->data = memory.get();
  block->size = size;
  block->requested = bytes;
  block->pool = pool_for(owner_for(stream), stream, small);
  block->allocated = true;
  block->adopted = true;
  segments_.insert(block);
  block->pool->owner->reserved += size;
  counters_.segment_adopted(small, size);
  counters_.allocated(small, size, bytes);
  return block;
}

// Gives a free adopted segment back to its allocator; if that cannot be, sees to it that no other is adopted.
bool DeviceCache::given_back(Block* block) {
  const auto kept = std::find(kept_.begin(), kept_.end(), block);
  if (!captured_ && !block->is_split() && device::host::free_if_idle(block->data)) {
    if (kept != kept_.end()) kept_.erase(kept);
    forget_segment(block);
    return true;
  }
  if (kept == kept_.end()) kept_.push_back(block);
  return false;
}

}  // namespace mybackend::runtime
