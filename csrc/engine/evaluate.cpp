// Evaluating one node: hooks, the node itself, validation, release, and the gradients handed on.
//
// Order, as upstream's: tensor hooks, retain_grad hooks, capture (see capture()), node prehooks, the node, validation,
// node posthooks, release of the saved variables.

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/anomaly.h"
#include "csrc/engine/run.h"
#include "csrc/engine/validate.h"

namespace mybackend::engine {
namespace {

using torch::autograd::AnomalyMode;

void call_tensor_hooks(Node& node, variable_list& gradients) {
  for (const auto& hook : node.tensor_pre_hooks()) gradients = (*hook)(gradients);
  for (const auto& [output, hook] : node.retains_grad_hooks()) gradients = (*hook)(gradients);
}

// A node that Python has seen may be a Python function; a C++ node leaves the thread-local state as it was.
template <class N>
bool known_to_python(const N& node) {
  if constexpr (requires { node.pyobj_slot(); }) {
    return node.pyobj_slot()->load_pyobj() != nullptr;
  } else {
    return node.pyobj() != nullptr;
  }
}

bool may_run_python(Node& node) {
  return known_to_python(node) || !node.pre_hooks().empty() || !node.post_hooks().empty() ||
         !node.retains_grad_hooks().empty() || !node.tensor_pre_hooks().empty() ||
         (node.sequence_nr() == UINT64_MAX && node.tensor_post_acc_grad_hooks() != nullptr);
}

}  // namespace

void Run::take_arguments(const Entry& entry, variable_list& arguments) {
  arguments.clear();
  if (entry.state & kCrossing) {
    const uint32_t index = static_cast<uint32_t>(&entry - workspace_->plan.entries.data());
    auto& buffer = crossing(index);
    for (auto& gradient : buffer.buffer) arguments.push_back(std::move(gradient));
    return;
  }
  Tensor* const first = workspace_->inputs.data() + entry.inputs_at;
  for (uint32_t i = 0; i < entry.inputs; ++i) arguments.push_back(std::move(first[i]));
}

// What the caller asked for is taken before the node's own hooks if the node runs as well (upstream's rule), else
// after its tensor hooks. Returns whether the node runs.
bool Run::capture(Entry& entry, variable_list& arguments, Node& node) {
  const bool runs = entry.state & kNeeded;
  if (!runs) call_tensor_hooks(node, arguments);
  const auto& captures = workspace_->captures;
  const uint32_t index = static_cast<uint32_t>(&entry - workspace_->plan.entries.data());
  for (auto at = std::lower_bound(captures.begin(), captures.end(), Capture{index, 0, 0});
       at != captures.end() && at->entry == index; ++at) {
    graph_task_->captured_vars_[at->output] = arguments[at->input];
  }
  return runs;
}

variable_list Run::call(Node& node, variable_list& arguments) {
  if (!node.tensor_pre_hooks().empty() || !node.retains_grad_hooks().empty()) call_tensor_hooks(node, arguments);
  for (const auto& hook : node.pre_hooks()) arguments = (*hook)(arguments);
  if (!options_.keep_graph) node.will_release_variables();
  variable_list outputs;
  if (node.post_hooks().empty()) {
    outputs = node(std::move(arguments));
    validate(node, outputs);
    return outputs;
  }
  // AccumulateGrad allows for this second reference when it looks whether it may keep the gradient.
  variable_list copy = arguments;
  outputs = node(std::move(copy));
  copy.clear();
  validate(node, outputs);
  for (const auto& hook : node.post_hooks()) outputs = (*hook)(outputs, arguments);
  return outputs;
}

void Run::restore_thread_state() {
  at::ThreadLocalState::setThreadLocalState(graph_task_->thread_locals_);
}

void Run::evaluate_recorded(uint32_t index) {
  RECORD_FUNCTION(c10::str("autograd::engine::evaluate_function: ", workspace_->plan.entries[index].node->name()),
                  c10::ArrayRef<const c10::IValue>());
  evaluate(index);
}

void Run::evaluate(uint32_t index) {
  auto& entry = workspace_->plan.entries[index];
  Node& node = *entry.node;
  auto& thread = this_thread();
  thread.node = &node;

  std::optional<c10::Stream> stream;
  if (entry.state >> kLaneShift) stream = node.stream();
  const c10::OptionalStreamGuard stream_guard(stream);
  if (entry.state & kCrossing) wait_for_producers(index, stream);

  variable_list arguments = std::move(workspace_->arguments);
  take_arguments(entry, arguments);
  const bool python = may_run_python(node);
  bool runs = true;
  if (!targets_.empty()) {
    runs = capture(entry, arguments, node);
    if (stream && (entry.state & kCaptured)) leave_on_stream(*stream);
  }
  if (runs) {
    const bool anomaly = AnomalyMode::is_enabled();
    const uint64_t first_made = anomaly ? at::sequence_number::peek() : 0;
    variable_list outputs = call(node, arguments);
    if (!options_.keep_graph) node.release_variables();
    if (!outputs.empty()) {
      if (anomaly) {
        if (AnomalyMode::should_check_nan()) check_for_nan(node, outputs);
        if (options_.create_graph) assign_parent(node, outputs, first_made);
      }
      arguments.clear();
      deliver(entry, node, outputs);
    } else if (stream) {
      leave_on_stream(*stream);
    }
  }
  arguments.clear();
  workspace_->arguments = std::move(arguments);
  if (python || at::GradMode::is_enabled() != options_.create_graph) restore_thread_state();
}

void Run::deliver(const Entry& entry, Node& node, variable_list& outputs) {
  auto& workspace = *workspace_;
  const size_t count = std::min<size_t>(outputs.size(), entry.edges);
  const uint32_t edges_at = entry.edges_at;
  std::optional<c10::Stream> stream;
  if (accelerator_) stream = node.stream();
  for (size_t i = 0; i < count; ++i) {
    const Plan::Edge edge = workspace.plan.edges[edges_at + i];
    if (edge.target == Plan::kNone) continue;
    if (accelerator_) {
      deliver_between_streams(edge.target, edge.place, node, std::move(outputs[i]), stream);
    } else {
      accumulate(workspace.inputs[edge.place], std::move(outputs[i]));
    }
    if (--workspace.plan.entries[edge.target].waiting == 0) make_ready(edge.target);
  }
}

}  // namespace mybackend::engine
