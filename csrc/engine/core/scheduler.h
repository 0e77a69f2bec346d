// Scheduler: who runs the nodes of which backward on which device.
//
// Lanes.  Lane 0 is the CPU; lane d + 1 is the accelerator d. A lane other than the CPU's has one seat, and only who
//   holds it runs nodes there, so that the nodes of one device never run at the same time.
// Solo.   A backward that one thread can serve alone (at most one accelerator) keeps its ready nodes to itself and
//   only asks for seats: sit().
// Shared. Otherwise the ready nodes are queued here, by job and lane. Each accelerator has a worker thread, started for
//   the first node that is queued for it, which runs nodes of all jobs. The owner, which called backward, runs CPU
//   nodes, with helpers up to the job's limit. While a worker is away, since the node that it runs waits for a backward
//   of its own, the owners of that and of all other jobs run the lane's nodes.
//
// Invariants, tested by number in test/cpp/engine/scheduler.cpp:
//   S1  a thread holds at most one seat
//   S2  no thread waits for a node, for a helper or for another seat while it holds a seat
//   S3  work() returns when no node of the job is queued or runs and no helper is inside of it
//   S4  after a failure the job's queued nodes never run
//   S5  seats are given in the order in which they were asked for
//   S6  nodes that are ready on different lanes run at once: the owner is not inside of a device's node while the
//       device's worker could be
// S1 and S2 exclude deadlock between backwards that nest on each other's devices: whoever waits owns nothing.
//
// Locks.  One mutex guards all of it. It is never held while a node runs, nor while a job's methods are called.
// Fork.   The child has none of the threads: forget_threads() makes the scheduler as new. Jobs of other threads are
//   gone with these.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "csrc/engine/core/ready_heap.h"

namespace mybackend::engine::core {

class Scheduler {
 public:
  static constexpr uint32_t kCpu = 0;
  static constexpr uint32_t kLanes = 65;

  class Job {
   public:
    virtual ~Job() = default;
    // Runs a node; calls make_ready() for those that it makes ready. What it throws fails the job.
    virtual void run(const Ready& node) = 0;
    // On a thread of the scheduler: calls `serve` with whatever the job's nodes need around them. Must not throw.
    virtual void help(const std::function<void()>& serve) = 0;
    // Called in a catch block, by the thread whose node threw, once.
    virtual void fail() = 0;

    uint32_t cpu_limit = 1;  // CPU nodes at a time; set before begin()

   private:
    friend class Scheduler;
    // Guarded by the scheduler's mutex.
    std::vector<ReadyHeap> ready;  // by lane
    size_t queued = 0;
    size_t running = 0;
    size_t helpers = 0;
    uint32_t cpu_running = 0;
    uint32_t cpu_helpers = 0;
    bool failed = false;
    std::condition_variable changed;
  };

  struct Threads {
    // Starts a thread for good: the worker of a lane.
    std::function<void(uint32_t lane, std::function<void()>)> start_worker;
    // Runs something on some other thread.
    std::function<void(std::function<void()>)> run;
  };
  explicit Scheduler(Threads threads);
  ~Scheduler() = delete;

  // Called by who waits, at every interval of 50 ms; may throw, which fails the job or gives up the wait for a seat.
  using Poll = std::function<void()>;

  // Shared: begin(), make_ready() of the roots, work(), all by the owner. begin() must be followed by work().
  void begin(Job& job);
  void make_ready(Job& job, uint32_t lane, const Ready& node);
  void work(Job& job, const Poll& poll);
  // The owner failed before work(), in a catch block.
  void fail(Job& job);

  // Solo: makes `lane` the one whose seat this thread holds; the CPU needs none. Waits for it, and now and then gives
  // it to others who wait.
  void sit(uint32_t lane, const Poll& poll) {
    if (held_ == lane && (lane == kCpu || !contested(lane))) return;
    move(lane, poll);
  }
  // The lane whose seat this thread holds, kCpu if none.
  static uint32_t held() { return held_; }

  // For who waits, inside of a node, until other threads have run nodes: the lane whose worker this thread may be is
  // meanwhile served by others. Made before the thread gives up its seat.
  class Away;

  void forget_threads();
  size_t workers() const;

 private:
  struct Lane {
    bool taken = false;
    bool has_worker = false;
    uint32_t away = 0;                // waits, one inside of the other, of the worker inside of a node
    std::deque<const void*> waiters;  // in the order of asking; the first takes the seat when it is free
    std::condition_variable free;     // for the waiters
    std::condition_variable work;     // for the worker
    std::atomic<uint32_t> wanted{0};  // how many wait; read without the mutex
  };
  struct State {
    mutable std::mutex mutex;
    std::array<Lane, kLanes> lanes;
    std::vector<Job*> jobs;
  };
  using Lock = std::unique_lock<std::mutex>;

  bool contested(uint32_t lane) const { return state_.load()->lanes[lane].wanted.load(std::memory_order_relaxed) != 0; }
  void move(uint32_t lane, const Poll& poll);
  void take(State& state, Lock& lock, uint32_t lane, const Poll& poll);
  void release(State& state);
  bool can_take(const State& state, uint32_t lane) const;
  bool owner_serves(const State& state, uint32_t lane) const { return lane == kCpu || state.lanes[lane].away != 0; }
  bool run_best(State& state, Lock& lock, Job& job, uint32_t first_lane, uint32_t last_lane);
  void run_node(State& state, Lock& lock, Job& job, uint32_t lane);
  void fail(State& state, Lock& lock, Job& job);
  void serve_lane(State& state, uint32_t lane);
  void serve_cpu(State& state, Job& job);
  void call_for_help(State& state, Job& job, uint32_t lane);
  static Job* best_job(const State& state, uint32_t lane);

  static thread_local uint32_t held_;
  static thread_local uint32_t since_taken_;  // nodes run since this thread took the seat
  static thread_local uint32_t serves_;       // the lane whose worker this thread is, kCpu if none
  std::atomic<State*> state_;                 // never freed: a thread may wait in it while the process ends or forks
  const Threads threads_;
};

class Scheduler::Away {
 public:
  explicit Away(Scheduler& scheduler) : state_(*scheduler.state_) { count(1); }
  ~Away() { count(-1); }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 private:
  void count(int32_t change) {
    if (serves_ == kCpu) return;
    const Lock lock(state_.mutex);
    state_.lanes[serves_].away += change;
  }
  State& state_;
};

}  // namespace mybackend::engine::core
