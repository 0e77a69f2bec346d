#include "csrc/engine/run.h"

#include <c10/core/DeviceGuard.h>
#include <cxxabi.h>
#include <torch/csrc/autograd/functions/tensor.h>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/engine.h"
#include "csrc/engine/shared.h"
#include "csrc/engine/trace.h"
#include "csrc/engine/watch.h"

namespace mybackend::engine {

ThreadState& this_thread() {
  static thread_local ThreadState state;
  return state;
}

uint64_t Run::key_of(const Entry& entry) {
  if (policy_ == nullptr) return entry.sequence;
  core::Candidate candidate{entry.sequence, 0, 0, arrivals_++};
  for (uint32_t i = 0; i < entry.inputs; ++i) {
    const Tensor& gradient = workspace_->inputs[entry.inputs_at + i];
    if (gradient.defined() && gradient.has_storage()) candidate.bytes_in += static_cast<int64_t>(gradient.nbytes());
  }
  const edge_list& edges = entry.node->next_edges();
  for (uint32_t i = 0; i < entry.edges; ++i) {
    const Plan::Edge edge = plan().edges[entry.edges_at + i];
    if (edge.target == Plan::kNone || workspace_->inputs[edge.place].defined()) continue;
    const auto& expected = edges[i].function->input_metadata(edges[i].input_nr);
    if (expected.was_default_constructed() || expected.is_nested_tensor() || expected.is_cpp_nested_tensor()) continue;
    int64_t elements = 1;
    for (const c10::SymInt& size : expected.shape_as_dim_vector()) elements *= size.maybe_as_int().value_or(1);
    candidate.bytes_out += elements * static_cast<int64_t>(expected.dtype().itemsize());
  }
  return policy_->key(candidate);
}

void Run::make_ready(uint32_t index) {
  const Entry& entry = plan().entries[index];
  const Ready ready{key_of(entry), depth_, index, this};
  if (observer_) ready_ns_[index] = now_ns();
  if (shared_) {
    scheduler().make_ready(*shared_, lane_of(entry), ready);
    return;
  }
  if (has_next_) {
    owner_->ready.push(next_);
    owner_->ready.push(ready);
    has_next_ = false;
    return;
  }
  next_ = ready;
  has_next_ = true;
}

void Run::deliver_roots() {
  Plan& plan = workspace_->plan;
  const bool single = roots_.size() == 1;
  for (size_t i = 0; i < roots_.size(); ++i) {
    const uint32_t index = plan.find(roots_[i].function.get());
    Entry& entry = plan.entries[index];
    auto lock = lock_if_shared();
    const bool ready = --entry.waiting == 0;
    // As upstream: a single root runs its hooks even where it is not needed.
    if (!single && !(entry.state & (kNeeded | kCaptured))) continue;
    Tensor gradient = gradients_[i];
    const uint32_t place = entry.inputs_at + roots_[i].input_nr;
    if (accelerator_) {
      std::optional<c10::Stream> stream;
      if (gradient.defined() && gradient.device().type() == *accelerator_) {
        stream = c10::impl::VirtualGuardImpl(*accelerator_).getStream(gradient.device());
      }
      deliver_between_streams(index, place, *entry.node, std::move(gradient), stream);
    } else if (shared_ && shared_->keeps_order()) {
      shared_->arrive(place, Plan::kNone, std::move(gradient));
    } else {
      accumulate(workspace_->inputs[place], std::move(gradient));
    }
    if (lock.owns_lock()) lock.unlock();
    if (ready) make_ready(index);
  }
}

void Run::run_solo() {
  auto& thread = *owner_;
  InterruptCheck interrupts(*thread.interrupt);
  deliver_roots();
  for (;;) {
    Ready ready;
    if (has_next_) {
      has_next_ = false;
      const bool first = thread.ready.empty() || (direct_ && depth_ == 0 && thread.ready.top() < next_);
      if (first) {
        ready = next_;
      } else {
        thread.ready.push(next_);
        ready = thread.ready.pop();
      }
    } else if (!thread.ready.empty() && thread.ready.top().run == this) {
      ready = thread.ready.pop();
    } else {
      return;
    }
    interrupts.poll();
    evaluate_traced(ready.index);
  }
}

// An in-place operation on a view adds a node of its own to exec_info while it runs. Several threads read the map then,
// so it is completed before they start.
void Run::enter_views_in_exec_info() {
  if (targets_.empty()) return;
  for (const Entry& entry : plan().entries) {
    if (!(entry.state & kNeeded)) continue;
    auto* const slices = dynamic_cast<torch::autograd::CopySlices*>(entry.node);
    if (slices != nullptr && slices->fn) slices->update_exec_info();
  }
}

void Run::run_shared() {
  auto& thread = this_thread();
  shared_ = std::make_unique<SharedRun>(*this);
  shared_->cpu_limit = settings().cpu_workers;
  if (shared_->cpu_limit > 1 && !accelerator_) {
    const auto order = order_of_execution();
    std::vector<uint32_t> ranks(plan().entries.size());
    for (uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
    shared_->keep_order(std::move(ranks), plan().inputs);
  }
  enter_views_in_exec_info();
  core::Scheduler& threads = scheduler();
  InterruptCheck interrupts(*thread.interrupt);
  threads.begin(*shared_);
  try {
    deliver_roots();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    threads.fail(*shared_);
  }
  threads.work(*shared_, [&] { interrupts.poll(); });
  shared_.reset();
}

void Run::restore_profiler() {
  if (profiler) at::set_record_function_tls_(*profiler);
}

void Run::work(const GraphTaskPtr& graph_task) {
  auto& thread = this_thread();
  owner_ = &thread;
  graph_task_ = graph_task;
  shared_interrupt_ = thread.interrupt;
  depth_ = thread.depth;
  Run* const outer = std::exchange(thread.run, this);
  Node* const outer_node = std::exchange(thread.node, nullptr);
  const uint32_t outer_seat = core::Scheduler::held();
  ++thread.nesting;
  ++thread.depth;
  if (profiler) {
    restore_profiler();
    graph_task->thread_locals_ = at::ThreadLocalState();
    traced_ = true;
  }
  if (observer_) {
    traced_ = true;
    ready_ns_.resize(plan().entries.size());
    for (const Entry& entry : plan().entries) waited_for_.push_back(entry.waiting);
  }
  seats_ = accelerator_.has_value() || outer_seat != core::Scheduler::kCpu;
  Watch watch(*this);
  if (watch.watching()) {
    watch_ = &watch;
    traced_ = true;
  }
  const bool alone = accelerators_ <= 1 && settings().cpu_workers == 1;
  try {
    if (alone || !c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
      run_solo();
    } else {
      run_shared();
    }
    if (core::Scheduler::held() != outer_seat) scheduler().sit(outer_seat, nullptr);
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended
  } catch (...) {
    has_next_ = false;
    thread.ready.drop(this);
    report(thread.node);
    if (core::Scheduler::held() != outer_seat) scheduler().sit(outer_seat, nullptr);
  }
  if (observer_) tell_end();
  watch_ = nullptr;
  workspace_->inputs.clear();
  workspace_->crossings.clear();
  --thread.depth;
  --thread.nesting;
  thread.node = outer_node;
  thread.run = outer;
  graph_task_.reset();
}

// Tells the graph task of the exception being handled, which `node` threw.
void Run::report(Node* node) {
  const NodePtr owner = node != nullptr ? node->getptr() : NodePtr();
  if (torch::autograd::AnomalyMode::is_enabled()) failed = owner;
  try {
    throw;
  } catch (std::exception& error) {
    Engine::get().thread_on_exception(graph_task_, owner, error);
  } catch (...) {
    try {
      TORCH_CHECK(false, "Function ", owner ? owner->name() : "of the autograd engine",
                  " threw something that is not a std::exception");
    } catch (std::exception& error) {
      Engine::get().thread_on_exception(graph_task_, owner, error);
    }
  }
}

}  // namespace mybackend::engine
