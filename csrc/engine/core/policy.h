// Policy: in which order ready nodes run. The largest key runs first; equal keys as ReadyHeap says.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mybackend::engine::core {

struct Candidate {
  uint64_t sequence;  // UINT64_MAX for an accumulator
  int64_t bytes_in;   // of the gradients that it takes, most of which it frees
  int64_t bytes_out;  // of gradients that it makes and that no other node has begun to add up
  uint64_t arrival;   // how many nodes of the run became ready before
};

class Policy {
 public:
  virtual ~Policy() = default;
  // Called once for each node that becomes ready, by any thread; what it throws fails the backward.
  virtual uint64_t key(const Candidate& node) const = 0;
};

// Upstream's order, but accumulators that one node makes ready run in the order of that node's inputs.
class StablePolicy final : public Policy {
 public:
  uint64_t key(const Candidate& node) const override {
    return node.sequence == UINT64_MAX ? node.sequence - node.arrival : node.sequence;
  }
};

// Lower peak memory: what frees most, or adds least, runs first; of equals the one made later in forward. Gradients
// then wait in fewer places, where upstream's order would first follow each branch to its end.
class MemoryPolicy final : public Policy {
 public:
  uint64_t key(const Candidate& node) const override {
    if (node.sequence == UINT64_MAX) return UINT64_MAX;
    constexpr int64_t kHalf = int64_t{1} << 30;  // in units of 256 bytes
    const int64_t gain = std::clamp((node.bytes_in - node.bytes_out) / 256, -kHalf, kHalf - 1);
    return (static_cast<uint64_t>(gain + kHalf) << 32) | (node.sequence & UINT32_MAX);
  }
};

}  // namespace mybackend::engine::core
