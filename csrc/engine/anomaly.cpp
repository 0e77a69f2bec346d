#include "csrc/engine/anomaly.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>

#include <unordered_set>

namespace mybackend::engine {

void check_for_nan(const Node& node, const variable_list& outputs) {
  at::AutoGradMode no_grad(false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (!output.defined()) continue;
    const c10::OptionalDeviceGuard guard(output.device());
    if (at::isnan(output)._is_any_true().item<bool>()) {
      throw std::runtime_error(c10::str("Function '", node.name(), "' returned nan values in its ", i, "th output."));
    }
  }
}

void assign_parent(Node& parent, const variable_list& outputs, uint64_t first) {
  std::unordered_set<Node*> seen{&parent};
  std::vector<Node*> pending;
  const auto visit = [&](Node* node) {
    if (node == nullptr || node->sequence_nr() < first || node->sequence_nr() == UINT64_MAX) return;
    if (seen.insert(node).second) pending.push_back(node);
  };
  for (const Tensor& output : outputs) {
    if (output.defined()) visit(output.grad_fn().get());
  }
  const NodePtr owner = parent.getptr();
  while (!pending.empty()) {
    Node* const node = pending.back();
    pending.pop_back();
    node->metadata()->assign_parent(owner);
    for (const Edge& edge : node->next_edges()) visit(edge.function.get());
  }
}

}  // namespace mybackend::engine
