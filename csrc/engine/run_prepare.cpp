// Planning: which nodes a run visits, which of them are needed, on which device each one runs.

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <bitset>

#include "csrc/engine/shared.h"
#include "csrc/engine/trace.h"

namespace mybackend::engine {

Run::Run(const edge_list& roots, const variable_list& gradients, const edge_list& targets, RunOptions options)
    : roots_(roots),
      gradients_(gradients),
      targets_(targets),
      options_(options),
      policy_(settings().policy),
      observer_(settings().observer()) {
  if (observer_) begin_ns_ = now_ns();
  auto& spare = this_thread().spare;
  if (spare.empty()) {
    workspace_ = std::make_unique<Workspace>();
  } else {
    workspace_ = std::move(spare.back());
    spare.pop_back();
  }
}

Run::~Run() {
  constexpr size_t kMostKept = size_t{1} << 20;  // entries: a graph this large comes once, its memory goes back
  constexpr size_t kMostSpare = 4;
  workspace_->clear();
  auto& spare = this_thread().spare;
  if (spare.size() < kMostSpare && workspace_->plan.entries.capacity() <= kMostKept) {
    spare.push_back(std::move(workspace_));
  }
}

void Workspace::clear() {
  plan.clear();
  inputs.clear();
  captures.clear();
  crossings.clear();
}

uint64_t Run::least_depth() const {
  uint64_t least = targets_.empty() ? 0 : UINT64_MAX;
  for (const Edge& target : targets_) least = std::min(least, target.function->topological_nr());
  return least;
}

void Run::prepare() {
  Plan& plan = workspace_->plan;
  for (const Edge& root : roots_) plan.add_root(root.function.get());
  plan.expand(least_depth());
  if (targets_.empty()) {
    for (Entry& entry : plan.entries) entry.state = kNeeded;
  } else {
    mark_needed();
  }
  for (const Edge& root : roots_) ++plan.entries[plan.find(root.function.get())].waiting;
  workspace_->inputs.resize(plan.inputs);
  find_lanes();
  if (observer_) planned_ns_ = now_ns();
  // With equal keys in the heap, pushing and popping the highest would change the order of the others.
  direct_ = !plan.ties && policy_ == nullptr;
}

// A node is needed if it is a target (of backward) or has an edge to a node that is needed or captured. Edges to
// nodes that are neither drop their gradients.
void Run::mark_needed() {
  Plan& plan = workspace_->plan;
  auto& captures = workspace_->captures;
  uint32_t output = 0;
  for (const Edge& target : targets_) {
    const uint32_t index = plan.find(target.function.get());
    if (index != Plan::kNone) {
      plan.entries[index].state |= options_.accumulate_grad ? kNeeded : kCaptured;
      if (!options_.accumulate_grad) captures.push_back({index, target.input_nr, output});
    }
    ++output;
  }
  std::sort(captures.begin(), captures.end());

  auto& order = workspace_->order;
  plan.topological_order(order);
  for (auto index = order.rbegin(); index != order.rend(); ++index) {
    Entry& entry = plan.entries[*index];
    bool needed = entry.state & kNeeded;
    for (uint32_t at = entry.edges_at; at != entry.edges_at + entry.edges; ++at) {
      uint32_t& target = plan.edges[at].target;
      if (target == Plan::kNone) continue;
      if (plan.entries[target].state & (kNeeded | kCaptured)) {
        needed = true;
      } else {
        target = Plan::kNone;
      }
    }
    if (needed) entry.state |= kNeeded;
  }
}

void Run::find_lanes() {
  const auto accelerator = at::getAccelerator();
  if (!accelerator) return;
  std::bitset<core::Scheduler::kLanes> lanes;
  for (Entry& entry : workspace_->plan.entries) {
    for (uint32_t input = 0; input < entry.inputs; ++input) {
      const c10::Device device = entry.node->input_metadata(input).device();
      if (device.type() != *accelerator) continue;
      const auto lane = static_cast<uint32_t>(device.index() + 1);
      entry.state |= lane << kLaneShift;
      lanes.set(lane);
      break;
    }
  }
  accelerators_ = static_cast<uint32_t>(lanes.count());
  if (accelerators_ != 0) accelerator_ = accelerator;
}

void Run::describe_to(GraphTask& graph_task, Node* driver) {
  if (accelerator_) note_caller_streams(graph_task);
  if (targets_.empty()) return;
  const Plan& plan = workspace_->plan;
  auto& info = graph_task.exec_info_;
  info.reserve(plan.entries.size() + 1);
  auto& own = info[driver];
  own.needed_ = true;
  own.captures_.reset();  // upstream's, of the target that stands for the caller's
  for (const Entry& entry : plan.entries) {
    if (entry.state & (kNeeded | kCaptured)) info[entry.node].needed_ = true;
  }
  if (!options_.accumulate_grad) graph_task.captured_vars_.resize(targets_.size());
}

}  // namespace mybackend::engine
