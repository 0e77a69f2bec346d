// What a run says of itself to code that its nodes and hooks call.

#include "csrc/engine/run.h"

namespace mybackend::engine {

// Whether the node runs in this backward, or has its tensor hooks run because the caller gets its gradient.
bool Run::will_run(const Node* node) const {
  const uint32_t index = plan().find(node);
  return index != Plan::kNone && (plan().entries[index].state & (kNeeded | kCaptured)) != 0;
}

// All nodes in the order in which one thread runs them, those that have run included.
std::vector<Node*> Run::execution_order() const {
  std::vector<Node*> nodes;
  for (const uint32_t index : order_of_execution()) nodes.push_back(plan().entries[index].node);
  return nodes;
}

std::vector<uint32_t> Run::order_of_execution() const {
  const auto& entries = plan().entries;
  const auto runs = [&](uint32_t index) { return (entries[index].state & (kNeeded | kCaptured)) != 0; };
  std::vector<uint32_t> waiting(entries.size());
  for (const auto& edge : plan().edges) {
    if (edge.target != Plan::kNone) ++waiting[edge.target];
  }
  for (const Edge& root : roots_) ++waiting[plan().find(root.function.get())];

  core::ReadyHeap ready;
  uint64_t arrivals = 0;
  const auto arrive = [&](uint32_t index) {
    if (--waiting[index] != 0 || !runs(index)) return;
    // How many bytes a policy would have seen is not known before the nodes have run.
    const core::Candidate candidate{entries[index].sequence, 0, 0, arrivals++};
    ready.push({policy_ ? policy_->key(candidate) : candidate.sequence, 0, index, nullptr});
  };
  for (const Edge& root : roots_) arrive(plan().find(root.function.get()));
  std::vector<uint32_t> order;
  while (!ready.empty()) {
    order.push_back(ready.pop().index);
    const auto& entry = entries[order.back()];
    for (uint32_t at = entry.edges_at; at != entry.edges_at + entry.edges; ++at) {
      if (plan().edges[at].target != Plan::kNone) arrive(plan().edges[at].target);
    }
  }
  return order;
}

}  // namespace mybackend::engine
