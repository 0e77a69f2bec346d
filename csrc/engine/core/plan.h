// Plan: the part of a graph that one backward visits, with a dense index for every node.
//
// One traversal from the roots fills flat arrays; afterwards nothing hashes. Node indices are found through a table
// by distance from the highest sequence number: nodes made by one thread have near-consecutive numbers. Nodes outside
// of its reach, or whose place is taken (two threads number alike), go through an open-addressing hash table.
//
// Generic in the node: `Traits` supplies
//   sequence(const Node&) -> uint64_t      priority; kFirst (the largest value) for accumulators
//   inputs(const Node&) -> uint32_t        how many gradients a node takes
//   depth(const Node&) -> uint64_t         length of the longest path to a leaf; it prunes the traversal
//   edges(const Node&) -> range of edges   each with .input_nr
//   target(const Edge&) -> Node*           null for an edge that leads nowhere
//   prefetch(const Node*)                  the node is looked at soon
//
// Ownership: a plan holds plain pointers; who holds the roots holds the graph. A plan is reused between backwards so
// that its arrays keep their memory; clear() forgets the contents only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mybackend::engine::core {

template <class Node, class Traits>
class Plan {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Entry {
    Node* node;
    uint64_t sequence;
    uint32_t waiting;    // edges whose gradient has not arrived yet
    uint32_t inputs_at;  // first of its places among all inputs
    uint32_t inputs;
    uint32_t edges_at;  // first of its edges among all edges
    uint32_t edges;     // zero for a node that is not expanded
    uint32_t state;     // the runner's flags; zero at first
  };
  struct Edge {
    uint32_t target;  // kNone: the gradient is dropped
    uint32_t place;   // among all inputs
  };

  std::vector<Entry> entries;
  std::vector<Edge> edges;
  uint32_t inputs = 0;
  bool ties = false;  // two nodes that are not accumulators share a sequence number

  void clear() {
    entries.clear();
    edges.clear();
    inputs = 0;
    ties = false;
    hashed_ = 0;
    was_out_of_reach_ = false;
    highest_ = 0;
    if (++epoch_ == 0) {  // the stamps have come round
      std::fill(near_.begin(), near_.end(), Near{});
      std::fill(far_.begin(), far_.end(), Far{});
      epoch_ = 1;
    }
  }

  // Roots are added first, then expand() is called once.
  uint32_t add_root(Node* node) {
    if (entries.empty() && Traits::sequence(*node) != UINT64_MAX) highest_ = Traits::sequence(*node);
    return index_of(node);
  }

  // Visits all that the roots reach, but nothing below nodes whose depth is less than `least_depth`.
  void expand(uint64_t least_depth) {
    for (uint32_t index = 0; index < entries.size(); ++index) {
      Node& node = *entries[index].node;
      if (least_depth != 0 && Traits::depth(node) < least_depth) continue;
      const auto first = static_cast<uint32_t>(edges.size());
      const auto& list = Traits::edges(node);
      for (const auto& edge : list) {
        Node* next = Traits::target(edge);
        if (next == nullptr) {
          edges.push_back({kNone, 0});
          continue;
        }
        Traits::prefetch(next);
        const uint32_t target = index_of(next);
        Entry& entry = entries[target];
        ++entry.waiting;
        edges.push_back({target, entry.inputs_at + edge.input_nr});
      }
      entries[index].edges_at = first;
      entries[index].edges = static_cast<uint32_t>(list.size());
    }
  }

  // kNone if the node is not in the plan.
  uint32_t find(const Node* node) const {
    const uint64_t distance = distance_of(Traits::sequence(*node));
    if (distance < near_.size() && near_[distance].epoch == epoch_ && entries[near_[distance].index].node == node) {
      return near_[distance].index;
    }
    return find_far(node);
  }

  // Every node after all nodes that have an edge to it; before the roots' own arrivals are counted in `waiting`.
  void topological_order(std::vector<uint32_t>& order) {
    order.clear();
    std::vector<uint32_t>& waiting = waiting_;
    waiting.resize(entries.size());
    for (uint32_t index = 0; index < entries.size(); ++index) {
      waiting[index] = entries[index].waiting;
      if (waiting[index] == 0) order.push_back(index);
    }
    for (size_t at = 0; at < order.size(); ++at) {
      const Entry& entry = entries[order[at]];
      for (uint32_t edge = entry.edges_at; edge != entry.edges_at + entry.edges; ++edge) {
        const uint32_t target = edges[edge].target;
        if (target != kNone && --waiting[target] == 0) order.push_back(target);
      }
    }
  }

 private:
  struct Near {
    uint32_t epoch = 0;
    uint32_t index = 0;
  };
  struct Far {
    const Node* node = nullptr;
    uint32_t epoch = 0;
    uint32_t index = 0;
  };

  static size_t hash(const Node* node) {
    return static_cast<size_t>((reinterpret_cast<uintptr_t>(node) >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20);
  }

  uint32_t find_far(const Node* node) const {
    if (far_.empty()) return kNone;
    for (size_t at = hash(node) & (far_.size() - 1);; at = (at + 1) & (far_.size() - 1)) {
      if (far_[at].epoch != epoch_) return kNone;
      if (far_[at].node == node) return far_[at].index;
    }
  }

  // Out of reach for accumulators, and, as it wraps round, for numbers above the root's.
  uint64_t distance_of(uint64_t sequence) const { return sequence == UINT64_MAX ? UINT64_MAX : highest_ - sequence; }

  uint32_t append(Node* node, uint64_t sequence) {
    const uint32_t count = Traits::inputs(*node);
    entries.push_back({node, sequence, 0, inputs, count, 0, 0, 0});
    inputs += count;
    return static_cast<uint32_t>(entries.size() - 1);
  }

  uint32_t index_of(Node* node) {
    const uint64_t sequence = Traits::sequence(*node);
    const uint64_t distance = distance_of(sequence);
    if (distance < near_.size() || reaches(distance)) {
      Near& near = near_[distance];
      if (near.epoch != epoch_) {
        // The table grows with the plan: what is in reach now may have been out of it when it was met first.
        if (was_out_of_reach_) {
          const uint32_t index = find_far(node);
          if (index != kNone) return index;
        }
        near = {epoch_, append(node, sequence)};
        return near.index;
      }
      if (entries[near.index].node == node) return near.index;
      ties = true;
    } else if (distance != UINT64_MAX) {
      was_out_of_reach_ = true;
    }
    return index_of_far(node, sequence);
  }

  bool reaches(uint64_t distance) {
    if (distance > 8 * entries.size() + 4096) return false;
    near_.resize(std::max<size_t>(2 * distance, 4096));
    return true;
  }

  uint32_t index_of_far(Node* node, uint64_t sequence) {
    if (2 * (hashed_ + 1) > far_.size()) grow();
    for (size_t at = hash(node) & (far_.size() - 1);; at = (at + 1) & (far_.size() - 1)) {
      Far& far = far_[at];
      if (far.epoch != epoch_) {
        ++hashed_;
        ties |= sequence != UINT64_MAX;  // not known to be unique
        far = {node, epoch_, append(node, sequence)};
        return far.index;
      }
      if (far.node == node) return far.index;
    }
  }

  void grow() {
    std::vector<Far> old(std::max<size_t>(2 * far_.size(), 64));
    old.swap(far_);
    for (const Far& entry : old) {
      if (entry.epoch != epoch_) continue;
      size_t at = hash(entry.node) & (far_.size() - 1);
      while (far_[at].epoch == epoch_) at = (at + 1) & (far_.size() - 1);
      far_[at] = entry;
    }
  }

  std::vector<Near> near_;
  std::vector<Far> far_;
  std::vector<uint32_t> waiting_;
  size_t hashed_ = 0;
  bool was_out_of_reach_ = false;  // a node is in far_ only because near_ was too short
  uint64_t highest_ = 0;
  uint32_t epoch_ = 1;  // that of an empty place is 0
};

}  // namespace mybackend::engine::core
