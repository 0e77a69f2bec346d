// What the engine calls upstream's types, and the traits by which core/plan.h sees a graph of theirs.
#pragma once

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "csrc/engine/core/plan.h"

namespace mybackend::engine {

using at::Tensor;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::GraphTask;
using torch::autograd::Node;
using torch::autograd::variable_list;
using GraphTaskPtr = std::shared_ptr<GraphTask>;

// A node spreads over several cache lines, which come together rather than one by one as they are needed.
inline void prefetch(const Node* node) {
  constexpr size_t kLine = 64;
  for (size_t offset = 0; offset < sizeof(Node); offset += kLine) {
    __builtin_prefetch(reinterpret_cast<const char*>(node) + offset);
  }
}
// std::shared_ptr until torch 2.12, c10::intrusive_ptr from then on.
using NodePtr = decltype(Edge::function);

struct GraphTraits {
  static uint64_t sequence(const Node& node) { return node.sequence_nr(); }
  static uint32_t inputs(const Node& node) { return node.num_inputs(); }
  static uint64_t depth(const Node& node) { return node.topological_nr(); }
  static const edge_list& edges(const Node& node) { return node.next_edges(); }
  static Node* target(const Edge& edge) { return edge.function.get(); }
  static void prefetch(const Node* node) { engine::prefetch(node); }
};
using Plan = core::Plan<Node, GraphTraits>;

template <class T, class... Arguments>
auto make_node(Arguments&&... arguments) {
  if constexpr (std::is_same_v<NodePtr, std::shared_ptr<Node>>) {
    return std::make_shared<T>(std::forward<Arguments>(arguments)...);
  } else {
    return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
  }
}

}  // namespace mybackend::engine
