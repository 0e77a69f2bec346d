#include "csrc/engine/run.h"

#include <c10/core/DeviceGuard.h>
#include <cxxabi.h>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/engine.h"
#include "csrc/engine/interrupt.h"

namespace mybackend::engine {

ThreadState& this_thread() {
  static thread_local ThreadState state;
  return state;
}

void Run::make_ready(uint32_t index) {
  auto& thread = this_thread();
  const Ready ready{workspace_->plan.entries[index].sequence, depth_, index, this};
  if (has_next_) {
    thread.ready.push(next_);
    thread.ready.push(ready);
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
    --entry.waiting;
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
    } else {
      accumulate(workspace_->inputs[place], std::move(gradient));
    }
    if (entry.waiting == 0) make_ready(index);
  }
}

void Run::loop() {
  auto& thread = this_thread();
  InterruptCheck interrupts(*thread.interrupt);
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
    if (profiled_) {
      evaluate_recorded(ready.index);
    } else {
      evaluate(ready.index);
    }
  }
}

void Run::work(const GraphTaskPtr& graph_task) {
  auto& thread = this_thread();
  graph_task_ = graph_task;
  depth_ = thread.depth;
  Run* const outer = std::exchange(thread.run, this);
  Node* const outer_node = std::exchange(thread.node, nullptr);
  ++thread.nesting;
  ++thread.depth;
  if (profiler) {
    at::set_record_function_tls_(*profiler);
    graph_task->thread_locals_ = at::ThreadLocalState();
    profiled_ = true;
  }
  try {
    deliver_roots();
    loop();
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is being ended
  } catch (...) {
    fail(thread.node);
  }
  workspace_->inputs.clear();
  workspace_->crossings.clear();
  --thread.depth;
  --thread.nesting;
  thread.node = outer_node;
  thread.run = outer;
  graph_task_.reset();
}

// Called while an exception is handled.
void Run::fail(Node* node) {
  failed_ = true;
  has_next_ = false;
  this_thread().ready.drop(this);
  const NodePtr owner = node != nullptr ? node->getptr() : NodePtr();
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
