// Run: one backward, from its plan to its end.
//
// A run belongs to the thread that called backward, its owner. The owner plans (prepare), then enters the GraphTask's
// context and runs the nodes (work): alone (solo) where at most one accelerator takes part, else with the scheduler's
// threads (shared.h). What the nodes share lies in flat arrays of the plan; see core/plan.h.
//
// Invariants, tested by number in test/autograd_engine:
//   I1  a node is made ready once: when the last gradient it waits for has arrived
//   I2  the first exception of a run wins; nodes that are ready then never run
//   I3  the variables a node saved are released right after it ran, unless the graph is kept
//   I4  a node sees the thread-local state of the call to backward, whatever a node before it did to its own
//   I5  before a node runs on a stream, that stream waits for every producer on another stream
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "csrc/engine/core/ready_heap.h"
#include "csrc/engine/interrupt.h"
#include "csrc/engine/node.h"
#include "csrc/engine/settings.h"

namespace mybackend::engine {

class SharedRun;
struct ThreadState;

// Bits of Plan::Entry::state.
enum : uint32_t {
  kNeeded = 1,     // has a path to a target, or there are no targets
  kCaptured = 2,   // a gradient of it is returned to the caller
  kCrossing = 4,   // some gradient of it came from another stream: it is in `crossings`
  kLaneShift = 8,  // from this bit on: 0 for the CPU, else the accelerator's index plus one
};

struct Capture {
  uint32_t entry;   // index of the node in the plan
  uint32_t input;   // of the node
  uint32_t output;  // of the call

  friend bool operator<(const Capture& a, const Capture& b) { return a.entry < b.entry; }
};

// Memory that outlives a run, so that the next one need not allocate it.
struct Workspace {
  Plan plan;
  std::vector<Tensor> inputs;  // by place; undefined where no gradient has arrived
  std::vector<Capture> captures;
  // Of nodes with gradients from other streams than their own, with the events to wait for.
  std::unordered_map<uint32_t, torch::autograd::InputBuffer> crossings;
  std::vector<uint32_t> order;

  void clear();
};

struct RunOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate_grad = false;
};

class Watch;

class Run {
 public:
  Run(const edge_list& roots, const variable_list& gradients, const edge_list& targets, RunOptions options);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Plans the run; outside of the graph task's context.
  void prepare();
  // Tells the graph task what code outside of the engine asks it for.
  void describe_to(GraphTask& graph_task, Node* driver);
  // Runs all nodes; inside of the context, as `graph_task`'s driver. Reports errors to the graph task, never throws.
  void work(const GraphTaskPtr& graph_task);

  // What Python asks while the run works: of torch._C._will_engine_execute_node and
  // _current_graph_task_execution_order.
  bool will_run(const Node* node) const;
  std::vector<Node*> execution_order() const;
  uint64_t graph_task_id() const { return graph_task_ ? graph_task_->id_ : UINT64_MAX; }

  NodePtr driver;
  Interrupt interrupt;  // used if this is the outermost run
  NodePtr failed;       // in anomaly mode: the node that threw
  // Set by the engine when a profiler runs: the thread-local state with the profiler's callbacks on.
  std::optional<at::RecordFunctionTLS> profiler;

 private:
  friend class SharedRun;
  friend class Watch;
  using Entry = Plan::Entry;
  using Ready = core::Ready;

  const Plan& plan() const { return workspace_->plan; }
  static uint32_t lane_of(const Entry& entry) { return entry.state >> kLaneShift; }

  // run_prepare.cpp
  void mark_needed();
  void find_lanes();
  uint64_t least_depth() const;

  // run_query.cpp
  std::vector<uint32_t> order_of_execution() const;

  // run.cpp
  void run_solo();
  void run_shared();
  void enter_views_in_exec_info();
  void deliver_roots();
  void make_ready(uint32_t index);
  uint64_t key_of(const Entry& entry);
  void report(Node* node);
  void restore_profiler();

  // trace.cpp
  void evaluate_traced(uint32_t index);
  void evaluate_observed(uint32_t index);
  void observe_locks(Node& node, bool needs_gil);
  void tell_end();

  // evaluate.cpp
  void evaluate(uint32_t index);
  bool capture(Entry& entry, variable_list& arguments, Node& node);
  variable_list call(Node& node, variable_list& arguments);
  void take_arguments(uint32_t index, variable_list& arguments);
  void prefetch_targets(const Entry& entry) const;
  void restore_thread_state();
  void deliver(uint32_t index, Node& node, variable_list& outputs);
  void deliver_shared(uint32_t index, Node& node, variable_list& outputs);
  std::unique_lock<std::mutex> lock_if_shared();

  // streams.cpp
  void deliver_between_streams(uint32_t target, uint32_t place, Node& producer, Tensor&& gradient,
                               const std::optional<c10::Stream>& stream);
  void take_crossing(uint32_t index, variable_list& arguments, const std::optional<c10::Stream>& stream);
  void leave_on_stream(const c10::Stream& stream);
  void note_caller_streams(GraphTask& graph_task) const;
  torch::autograd::InputBuffer& crossing(uint32_t index);

  const edge_list& roots_;
  const variable_list& gradients_;
  const edge_list& targets_;
  const RunOptions options_;
  std::unique_ptr<Workspace> workspace_;
  GraphTaskPtr graph_task_;
  ThreadState* owner_ = nullptr;  // of the thread that works
  Interrupt* shared_interrupt_ = nullptr;
  const core::Policy* policy_;
  std::atomic<uint64_t> arrivals_{0};  // nodes made ready so far; counted for a policy only
  std::shared_ptr<core::Observer> observer_;
  int64_t begin_ns_ = 0;  // these two only for an observer
  int64_t planned_ns_ = 0;
  Watch* watch_ = nullptr;             // set while the run works, if it is watched
  std::vector<int64_t> ready_ns_;      // by entry, if there is an observer
  std::vector<uint32_t> waited_for_;   // likewise
  std::unique_ptr<SharedRun> shared_;  // set while the run is shared
  std::optional<c10::Stream> last_left_;
  std::optional<c10::DeviceType> accelerator_;  // set only if the plan has nodes of it
  uint32_t accelerators_ = 0;                   // how many take part
  uint32_t depth_ = 0;
  bool seats_ = false;   // solo: nodes need a seat, or the thread has one to give up
  bool direct_ = false;  // solo: the one node made ready may run without passing through the heap
  bool traced_ = false;  // a profiler or an observer is told of the nodes
  Ready next_{};         // solo, valid if has_next_: made ready last, not in the heap
  bool has_next_ = false;
};

// What is measured of a node for its record (core/observer.h).
struct Measures {
  bool wanted = false;  // by an observer
  int64_t seat_ns = 0;
  int64_t lock_ns = 0;
  int64_t sum_ns = 0;
  int64_t sums = 0;
  int64_t bytes = 0;
};

// What the engine keeps for each thread.
struct ThreadState {
  core::ReadyHeap ready;
  variable_list arguments;         // handed to a node and taken back, for its memory
  Run* run = nullptr;              // the innermost that works on this thread
  Node* node = nullptr;            // the one that this thread runs
  int nesting = 0;                 // runs on this thread
  uint32_t depth = 0;              // runs that enclose what this thread does, on all threads
  Interrupt* interrupt = nullptr;  // of the outermost of these
  Measures measures;               // of the node
  std::vector<std::unique_ptr<Workspace>> spare;
  NodePtr spare_driver;
  NodePtr failed;  // in anomaly mode: the node whose exception the last backward of this thread threw
};
ThreadState& this_thread();

}  // namespace mybackend::engine
