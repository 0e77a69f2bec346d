// Telling the profiler and the observer of each node, with upstream's event names.

#include <ATen/record_function.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "csrc/engine/run.h"
#include "csrc/engine/trace.h"
#include "csrc/engine/watch.h"

namespace mybackend::engine {

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
}

void Run::evaluate_traced(uint32_t index) {
  if (!traced_) return evaluate(index);
  struct Watching {
    Watching(Watch* watch, uint32_t index) : watch(watch), index(index) {
      if (watch != nullptr) watch->began(index);
    }
    ~Watching() {
      if (watch != nullptr) watch->ended(index);
    }
    Watch* const watch;
    const uint32_t index;
  } watching(watch_, index);
  RECORD_FUNCTION(c10::str("autograd::engine::evaluate_function: ", plan().entries[index].node->name()),
                  c10::ArrayRef<const c10::IValue>());
  if (observer_ == nullptr) return evaluate(index);
  evaluate_observed(index);
}

void Run::evaluate_observed(uint32_t index) {
  const Entry& entry = plan().entries[index];
  ThreadState& thread = this_thread();
  core::NodeRecord record;
  record.start_ns = now_ns();
  // A node may run a backward of its own on this thread.
  const Measures outer = std::exchange(thread.measures, {/*wanted=*/true, /*seat_ns=*/record.start_ns});
  const NodePtr node = entry.node->getptr();
  const int64_t ready_ns = ready_ns_[index];
  const struct Tell {
    Run& run;
    core::NodeRecord& record;
    const NodePtr& node;
    const Entry& entry;
    int64_t ready_ns;
    uint32_t waited_for;
    const Measures& outer;
    ~Tell() {
      const Measures measures = std::exchange(this_thread().measures, outer);
      record.end_ns = now_ns();
      record.name = node->name();
      record.sequence = entry.sequence;
      record.backward = run.graph_task_id();
      record.depth = run.depth_;
      record.device = static_cast<int32_t>(lane_of(entry)) - 1;
      const auto stream = record.device >= 0 ? node->stream() : std::nullopt;
      record.stream = stream ? stream->id() : 0;
      record.thread = syscall(SYS_gettid);
      record.ready_ns = ready_ns;
      record.seat_ns = measures.seat_ns;
      record.bytes = measures.bytes;
      record.waited_for = waited_for;
      record.lock_ns = measures.lock_ns;
      record.sum_ns = measures.sum_ns;
      record.sums = measures.sums;
      run.observer_->on_node(std::move(record));
    }
  } tell{*this, record, node, entry, ready_ns, waited_for_[index], outer};
  evaluate(index);
}

// How long the node would wait for another thread that is inside of it, and for the GIL if it needs that.
void Run::observe_locks(Node& node, bool needs_gil) {
  // The mutex that a C++ node holds while it runs; Python's own nodes leave it alone.
  struct MutexOf : Node {
    static std::mutex& node(Node& node) { return node.*(&MutexOf::mutex_); }
  };
  const int64_t begin = now_ns();
  { const std::lock_guard<std::mutex> lock(MutexOf::node(node)); }
  if (needs_gil) python().wait_for_gil();
  this_thread().measures.lock_ns = now_ns() - begin;
}

void Run::tell_end() {
  const auto targets = std::count_if(plan().edges.begin(), plan().edges.end(),
                                     [](const Plan::Edge& edge) { return edge.target != Plan::kNone; });
  observer_->on_backward({graph_task_id(), depth_, syscall(SYS_gettid), begin_ns_, planned_ns_, now_ns(),
                          static_cast<int64_t>(plan().entries.size()), targets, graph_task_->has_error_});
}

}  // namespace mybackend::engine
