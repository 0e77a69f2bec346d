// Block, SizeBins and StreamPool: the book-keeping of the caching allocator, without policy and without the driver.
//
// A segment is one piece of memory from the driver. It is cut into blocks that form a list in address order
// (`previous`, `next`); a block is either handed out or in the free list of its pool. Free neighbours are always
// merged, so two free blocks are never adjacent and a segment is wholly free exactly when it is one free block.
//
// A pool holds the free blocks of one stream and one size class: memory freed on a stream is used again on that stream
// without waiting, because work on it is in order. Small pools keep free blocks in bins, one for each multiple of 512
// bytes, with a bit for each bin that is not empty: the best fit is found in constant time. Large pools are ordered
// sets.
//
// Ownership: blocks belong to the DeviceCache that made them (device_cache.h); every function here runs under its lock.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <c10/core/Stream.h>

#include "csrc/device/api.h"

namespace mybackend::runtime {

constexpr size_t kRounding = 512;           // every block is a multiple
constexpr size_t kSmallLimit = 1 << 20;     // requests up to this come from small pools
constexpr size_t kSmallSegment = 2 << 20;   // what a small pool asks of the driver
constexpr size_t kLargeSegment = 20 << 20;  // what a large pool asks for requests below kMinLargeRequest
constexpr size_t kMinLargeRequest = 10 << 20;
constexpr size_t kLargeRounding = 2 << 20;  // larger segments are multiples

class DeviceCache;
struct StreamPool;

struct Block {
  void* data = nullptr;
  size_t size = 0;
  size_t requested = 0;  // bytes the user asked for
  StreamPool* pool = nullptr;
  Block* previous = nullptr;  // neighbours in the segment
  Block* next = nullptr;
  Block* bin_previous = nullptr;  // neighbours in the free list; `bin_next` also links unused Block objects
  Block* bin_next = nullptr;
  bool allocated = false;
  bool adopted = false;                               // the first block of a segment that another allocator has made
  int pending_events = 0;                             // uses on other streams that have not finished
  std::unique_ptr<std::vector<c10::Stream>> used_on;  // other streams, by record_stream

  bool is_split() const { return previous != nullptr || next != nullptr; }
  bool is_free() const { return !allocated && pending_events == 0 && used_on == nullptr; }
};

// Free blocks of at most kSmallSegment bytes by size.
class SizeBins {
 public:
  void insert(Block* block) {
    const size_t bin = bin_of(block->size);
    Block* head = heads_[bin];
    block->bin_previous = nullptr;
    block->bin_next = head;
    if (head != nullptr) head->bin_previous = block;
    heads_[bin] = block;
    words_[bin / 64] |= uint64_t{1} << bin % 64;
    summary_ |= uint64_t{1} << bin / 64;
  }

  void erase(Block* block) {
    if (block->bin_next != nullptr) block->bin_next->bin_previous = block->bin_previous;
    if (block->bin_previous != nullptr) {
      block->bin_previous->bin_next = block->bin_next;
      return;
    }
    const size_t bin = bin_of(block->size);
    heads_[bin] = block->bin_next;
    if (heads_[bin] != nullptr) return;
    words_[bin / 64] &= ~(uint64_t{1} << bin % 64);
    if (words_[bin / 64] == 0) summary_ &= ~(uint64_t{1} << bin / 64);
  }

  // The smallest block of at least `size` bytes, or nullptr. It stays in its bin.
  Block* best_fit(size_t size) const {
    const size_t bin = bin_of(size);
    const uint64_t word = words_[bin / 64] >> bin % 64;
    if (word != 0) return heads_[bin + std::countr_zero(word)];
    if (bin / 64 == 63) return nullptr;
    const uint64_t above = summary_ >> (bin / 64 + 1) << (bin / 64 + 1);
    if (above == 0) return nullptr;
    const size_t first = std::countr_zero(above);
    return heads_[first * 64 + std::countr_zero(words_[first])];
  }

  template <class F>
  void for_each(F f) const {
    for (Block* head : heads_) {
      for (Block* block = head; block != nullptr;) {
        Block* next = block->bin_next;  // `f` may erase the block
        f(block);
        block = next;
      }
    }
  }

 private:
  static constexpr size_t kBins = kSmallSegment / kRounding;
  static_assert(kBins == 64 * 64, "one summary word of one bit for each word of 64 bins");
  static size_t bin_of(size_t size) { return size / kRounding - 1; }

  uint64_t summary_ = 0;
  uint64_t words_[kBins / 64] = {};
  Block* heads_[kBins] = {};
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->data < b->data;
  }
};

// Which allocations a pool serves: those of the program, or those made while a graph is captured into a private pool.
struct PoolOwner {
  std::pair<unsigned long long, unsigned long long> id{0, 0};
  int users = 0;        // captures and graphs that hold a private pool
  size_t reserved = 0;  // bytes of its segments
};

struct StreamPool {
  StreamPool(DeviceCache* cache_, PoolOwner* owner_, device::Stream stream_, bool small_)
      : cache(cache_), owner(owner_), stream(stream_), small(small_), bins(small_ ? new SizeBins : nullptr) {}

  DeviceCache* cache;
  PoolOwner* owner;
  device::Stream stream;
  bool small;
  std::unique_ptr<SizeBins> bins;    // small pools
  std::set<Block*, BySize> by_size;  // large pools

  void insert(Block* block) {
    if (small)
      bins->insert(block);
    else
      by_size.insert(block);
  }
  void erase(Block* block) {
    if (small)
      bins->erase(block);
    else
      by_size.erase(block);
  }
  Block* best_fit(size_t size) const {
    if (small) return bins->best_fit(size);
    Block key;
    key.size = size;
    const auto found = by_size.lower_bound(&key);
    return found == by_size.end() ? nullptr : *found;
  }
  template <class F>
  void for_each_free(F f) const {
    if (small) return bins->for_each(f);
    const std::vector<Block*> free(by_size.begin(), by_size.end());  // `f` may erase the block
    for (Block* block : free) f(block);
  }
};

}  // namespace mybackend::runtime
