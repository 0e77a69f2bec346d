// Evaluating one node: hooks, the node itself, validation, release, and the gradients handed on.
//
// Order, as upstream's: tensor hooks, retain_grad hooks, capture (see capture()), node prehooks, the node, validation,
// node posthooks, release of the saved variables.

#include <ATen/SequenceNumber.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/anomaly.h"
#include "csrc/engine/shared.h"
#include "csrc/engine/trace.h"
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

// An accumulator keeps a gradient that nobody else holds as .grad. Where the gradient is a view of something that is
// held, as upstream does not look at, .grad would share its memory.
void own_memory(Node& node, variable_list& gradients) {
  if (gradients.size() != 1 || !gradients[0].defined()) return;
  Tensor& gradient = gradients[0];
  if (gradient.layout() != at::kStrided || !gradient.has_storage() || gradient.storage().use_count() == 1 ||
      at::isTensorSubclassLike(gradient)) {
    return;
  }
  const auto* const accumulator = dynamic_cast<torch::autograd::AccumulateGrad*>(&node);
  if (accumulator == nullptr || accumulator->variable.grad().defined()) return;
  if (!torch::autograd::impl::is_tensor_stealable(gradient, 1)) return;  // it is copied anyway
  gradient = torch::autograd::utils::clone_obey_contract(gradient, accumulator->variable);
}

int64_t bytes_of(const variable_list& tensors) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.has_storage() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) {
      bytes += static_cast<int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

}  // namespace

void Run::take_arguments(uint32_t index, variable_list& arguments) {
  const Entry& entry = plan().entries[index];
  if (shared_ && shared_->keeps_order()) {
    for (uint32_t i = 0; i < entry.inputs; ++i) arguments.push_back(shared_->take_sum(entry.inputs_at + i));
    return;
  }
  Tensor* const first = workspace_->inputs.data() + entry.inputs_at;
  for (uint32_t i = 0; i < entry.inputs; ++i) arguments.push_back(std::move(first[i]));
}

// When the node has run, its gradients are compared with what the nodes after it expect. In a large graph those have
// left the cache since they were planned; they come back while the node runs.
void Run::prefetch_targets(const Entry& entry) const {
  constexpr uint32_t kMost = 8;
  const uint32_t end = entry.edges_at + std::min(entry.edges, kMost);
  for (uint32_t at = entry.edges_at; at != end; ++at) {
    const uint32_t target = plan().edges[at].target;
    if (target != Plan::kNone) prefetch(plan().entries[target].node);
  }
}

// What the caller asked for is taken before the node's own hooks if the node runs as well (upstream's rule), else
// after its tensor hooks. Returns whether the node runs.
bool Run::capture(Entry& entry, variable_list& arguments, Node& node) {
  const bool runs = entry.state & kNeeded;
  if (!runs) call_tensor_hooks(node, arguments);
  if (!(entry.state & kCaptured)) return runs;
  const auto lock = lock_if_shared();
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
  if (node.sequence_nr() == UINT64_MAX && !options_.create_graph) own_memory(node, arguments);
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

std::unique_lock<std::mutex> Run::lock_if_shared() {
  return shared_ ? std::unique_lock<std::mutex>(shared_->mutex) : std::unique_lock<std::mutex>();
}

void Run::evaluate(uint32_t index) {
  auto& entry = workspace_->plan.entries[index];
  Node& node = *entry.node;
  auto& thread = shared_ ? this_thread() : *owner_;
  thread.node = &node;
  const uint32_t lane = lane_of(entry);
  if (seats_ && !shared_) {
    scheduler().sit(lane, [&] { InterruptCheck(*thread.interrupt, /*at_once=*/true).poll(); });
    if (observer_) thread.measures.seat_ns = now_ns();
  }

  std::optional<c10::Stream> stream;
  if (lane != core::Scheduler::kCpu) stream = node.stream();
  const c10::OptionalStreamGuard stream_guard(stream);

  variable_list arguments = std::move(thread.arguments);
  arguments.clear();
  if (entry.state & kCrossing) {
    take_crossing(index, arguments, stream);
  } else {
    take_arguments(index, arguments);
  }
  const bool python = may_run_python(node);
  if (observer_) observe_locks(node, python);
  bool runs = true;
  if (!targets_.empty()) {
    runs = capture(entry, arguments, node);
    if (stream && (entry.state & kCaptured)) leave_on_stream(*stream);
  }
  if (runs) {
    const bool anomaly = AnomalyMode::is_enabled();
    const uint64_t first_made = anomaly ? at::sequence_number::peek() : 0;
    prefetch_targets(entry);
    variable_list outputs = call(node, arguments);
    if (!options_.keep_graph) node.release_variables();
    if (!outputs.empty()) {
      if (anomaly) {
        if (AnomalyMode::should_check_nan()) check_for_nan(node, outputs);
        if (options_.create_graph) assign_parent(node, outputs, first_made);
      }
      arguments.clear();
      if (observer_) thread.measures.bytes = bytes_of(outputs);
      if (shared_) {
        deliver_shared(index, node, outputs);
      } else {
        deliver(index, node, outputs);
      }
    } else if (stream) {
      leave_on_stream(*stream);
    }
  }
  arguments.clear();
  thread.arguments = std::move(arguments);
  thread.node = nullptr;
  if (python || at::GradMode::is_enabled() != options_.create_graph) restore_thread_state();
}

void Run::deliver(uint32_t index, Node& node, variable_list& outputs) {
  auto& workspace = *workspace_;
  const Entry entry = workspace.plan.entries[index];
  const size_t count = std::min<size_t>(outputs.size(), entry.edges);
  std::optional<c10::Stream> stream;
  if (accelerator_) stream = node.stream();
  for (size_t i = 0; i < count; ++i) {
    const Plan::Edge edge = workspace.plan.edges[entry.edges_at + i];
    if (edge.target == Plan::kNone) continue;
    if (accelerator_) {
      deliver_between_streams(edge.target, edge.place, node, std::move(outputs[i]), stream);
    } else {
      accumulate(workspace.inputs[edge.place], std::move(outputs[i]));
    }
    if (--workspace.plan.entries[edge.target].waiting == 0) make_ready(edge.target);
  }
}

void Run::deliver_shared(uint32_t index, Node& node, variable_list& outputs) {
  auto& workspace = *workspace_;
  const Entry entry = workspace.plan.entries[index];
  const size_t count = std::min<size_t>(outputs.size(), entry.edges);
  std::optional<c10::Stream> stream;
  if (accelerator_) stream = node.stream();
  c10::SmallVector<uint32_t, 8> ready;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    for (size_t i = 0; i < count; ++i) {
      const Plan::Edge edge = workspace.plan.edges[entry.edges_at + i];
      if (edge.target == Plan::kNone) continue;
      if (accelerator_) {
        deliver_between_streams(edge.target, edge.place, node, std::move(outputs[i]), stream);
      } else {
        shared_->arrive(edge.place, index, std::move(outputs[i]));
      }
      if (--workspace.plan.entries[edge.target].waiting == 0) ready.push_back(edge.target);
    }
  }
  for (const uint32_t target : ready) make_ready(target);
}

}  // namespace mybackend::engine
