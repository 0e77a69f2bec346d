// Nodes without torch: what core/plan.h and core/scheduler.h need of one, and graphs of them at random.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "csrc/engine/core/plan.h"

namespace test {

struct FakeNode;

struct FakeEdge {
  FakeNode* function;
  uint32_t input_nr;
};

struct FakeNode {
  uint64_t sequence = 0;
  uint64_t depth = 0;
  uint32_t inputs = 1;
  uint32_t lane = 0;
  std::vector<FakeEdge> edges;
};

struct FakeTraits {
  static uint64_t sequence(const FakeNode& node) { return node.sequence; }
  static uint32_t inputs(const FakeNode& node) { return node.inputs; }
  static uint64_t depth(const FakeNode& node) { return node.depth; }
  static const std::vector<FakeEdge>& edges(const FakeNode& node) { return node.edges; }
  static FakeNode* target(const FakeEdge& edge) { return edge.function; }
  static void prefetch(const FakeNode*) {}
};
using FakePlan = mybackend::engine::core::Plan<FakeNode, FakeTraits>;

// `count` nodes, the last of which is the root; each has up to three edges to earlier ones.
inline std::vector<std::unique_ptr<FakeNode>> random_graph(uint32_t count, uint32_t lanes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::unique_ptr<FakeNode>> nodes;
  for (uint32_t i = 0; i < count; ++i) {
    auto node = std::make_unique<FakeNode>();
    node->sequence = i;
    node->inputs = 1 + random() % 2;
    node->lane = random() % lanes;
    for (uint32_t edge = 0; i > 0 && edge < 1 + random() % 3; ++edge) {
      FakeNode* const next = nodes[random() % 4 == 0 ? random() % i : i - 1].get();
      node->edges.push_back({next, static_cast<uint32_t>(random() % next->inputs)});
      node->depth = std::max(node->depth, next->depth + 1);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace test
