// Telling the profiler and the observer of each node, with upstream's event names.

#include <ATen/record_function.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "csrc/engine/run.h"
#include "csrc/engine/trace.h"

namespace mybackend::engine {

int64_t now_ns() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
}

void Run::evaluate_traced(uint32_t index) {
  if (!traced_) return evaluate(index);
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
  thread.seat_ns = record.start_ns;
  thread.bytes_made = 0;
  const NodePtr node = entry.node->getptr();
  const int64_t ready_ns = ready_ns_[index];
  const struct Tell {
    Run& run;
    core::NodeRecord& record;
    const NodePtr& node;
    const Entry& entry;
    int64_t ready_ns;
    uint32_t waited_for;
    ~Tell() {
      ThreadState& thread = this_thread();
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
      record.seat_ns = thread.seat_ns;
      record.bytes = thread.bytes_made;
      record.waited_for = waited_for;
      run.observer_->on_node(std::move(record));
    }
  } tell{*this, record, node, entry, ready_ns, waited_for_[index]};
  evaluate(index);
}

}  // namespace mybackend::engine
