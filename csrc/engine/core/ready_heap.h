// ReadyHeap: the nodes that may run, deepest reentrant backward first, then highest sequence number.
//
// Equal entries leave in the order in which std::priority_queue of libstdc++ gives them back, since upstream's engine
// is built on that and its users see the order (gradients of one node reach their accumulators in it).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mybackend::engine::core {

struct Ready {
  uint64_t key;    // from the policy; the sequence number by default
  uint32_t depth;  // how many backwards enclose the node's own
  uint32_t index;  // in its plan
  void* run;       // the backward it belongs to

  friend bool operator<(const Ready& a, const Ready& b) {
    return a.depth == b.depth ? a.key < b.key : a.depth < b.depth;
  }
};

class ReadyHeap {
 public:
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const Ready& top() const { return entries_.front(); }
  const std::vector<Ready>& entries() const { return entries_; }

  void push(const Ready& ready) {
    entries_.push_back(ready);
    std::push_heap(entries_.begin(), entries_.end());
  }
  Ready pop() {
    std::pop_heap(entries_.begin(), entries_.end());
    const Ready ready = entries_.back();
    entries_.pop_back();
    return ready;
  }
  // After an error: what is left of this backward will not run.
  void drop(const void* run) {
    const auto gone = std::remove_if(entries_.begin(), entries_.end(), [&](const Ready& r) { return r.run == run; });
    if (gone == entries_.end()) return;
    entries_.erase(gone, entries_.end());
    std::make_heap(entries_.begin(), entries_.end());
  }

 private:
  std::vector<Ready> entries_;
};

}  // namespace mybackend::engine::core
