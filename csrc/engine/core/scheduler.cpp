#include "csrc/engine/core/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mybackend::engine::core {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr uint32_t kNodesBeforeYield = 32;

}  // namespace

thread_local uint32_t Scheduler::held_ = kCpu;
thread_local uint32_t Scheduler::since_taken_ = 0;
thread_local uint32_t Scheduler::serves_ = kCpu;

Scheduler::Scheduler(Threads threads) : state_(new State), threads_(std::move(threads)) {}

void Scheduler::forget_threads() {
  state_ = new State;
}

size_t Scheduler::workers() const {
  const State& state = *state_;
  std::lock_guard<std::mutex> lock(state.mutex);
  return std::count_if(state.lanes.begin(), state.lanes.end(), [](const Lane& lane) { return lane.has_worker; });
}

// ---- seats

bool Scheduler::can_take(const State& state, uint32_t lane) const {
  return lane == kCpu || held_ == lane || (!state.lanes[lane].taken && state.lanes[lane].waiters.empty());
}

void Scheduler::release(State& state) {
  if (held_ == kCpu) return;
  const uint32_t lane = std::exchange(held_, kCpu);
  state.lanes[lane].taken = false;
  state.lanes[lane].free.notify_all();
  state.lanes[lane].work.notify_one();
  for (Job* job : state.jobs) {
    if (!job->ready[lane].empty()) job->changed.notify_all();
  }
}

void Scheduler::take(State& state, Lock& lock, uint32_t lane, const Poll& poll) {
  if (lane == kCpu) return;
  Lane& wanted = state.lanes[lane];
  const void* const me = &held_;
  wanted.waiters.push_back(me);
  ++wanted.wanted;
  const auto leave = [&] {
    wanted.waiters.erase(std::find(wanted.waiters.begin(), wanted.waiters.end(), me));
    --wanted.wanted;
  };
  while (wanted.taken || wanted.waiters.front() != me) {
    if (!poll) {
      wanted.free.wait(lock);
      continue;
    }
    if (wanted.free.wait_for(lock, kPollInterval) == std::cv_status::no_timeout) continue;
    lock.unlock();
    try {
      poll();
    } catch (...) {
      lock.lock();
      leave();
      wanted.free.notify_all();
      lock.unlock();
      throw;
    }
    lock.lock();
  }
  leave();
  wanted.taken = true;
  held_ = lane;
  since_taken_ = 0;
}

void Scheduler::move(uint32_t lane, const Poll& poll) {
  if (held_ == lane && ++since_taken_ < kNodesBeforeYield) return;
  State& state = *state_;
  Lock lock(state.mutex);
  release(state);  // S2
  take(state, lock, lane, poll);
}

// ---- jobs

void Scheduler::begin(Job& job) {
  State& state = *state_;
  job.ready.resize(kLanes);
  Lock lock(state.mutex);
  state.jobs.push_back(&job);
}

void Scheduler::make_ready(Job& job, uint32_t lane, const Ready& node) {
  State& state = *state_;
  Lock lock(state.mutex);
  if (job.failed) return;  // S4
  job.ready[lane].push(node);
  ++job.queued;
  job.changed.notify_all();
  call_for_help(state, job, lane);
}

// Wakes or starts a thread for what this one may not come to run itself. The mutex is held; threads that are started
// first wait for it.
void Scheduler::call_for_help(State& state, Job& job, uint32_t lane) {
  if (lane == kCpu) {
    const size_t could_run = std::min<size_t>(job.ready[kCpu].size() + job.cpu_running, job.cpu_limit);
    if (job.cpu_helpers + 1 >= could_run) return;
    ++job.cpu_helpers;
    ++job.helpers;
    threads_.run([this, &state, &job] {
      job.help([&] { serve_cpu(state, job); });
      Lock lock(state.mutex);
      --job.cpu_helpers;
      --job.helpers;
      job.changed.notify_all();
    });
    return;
  }
  if (serves_ == lane) return;  // this thread looks for its next node when it has run this one
  Lane& wanted = state.lanes[lane];
  if (!wanted.has_worker) {
    wanted.has_worker = true;
    threads_.start_worker(lane, [this, &state, lane] { serve_lane(state, lane); });
  } else {
    wanted.work.notify_one();
  }
}

void Scheduler::work(Job& job, const Poll& poll) {
  State& state = *state_;
  const uint32_t outer = held_;
  const Away away(*this);
  Lock lock(state.mutex);
  while (job.queued + job.running + job.helpers != 0) {
    if (run_best(state, lock, job, 0, kLanes - 1)) continue;
    release(state);  // S2
    if (job.changed.wait_for(lock, kPollInterval) == std::cv_status::no_timeout || !poll) continue;
    lock.unlock();
    try {
      poll();
    } catch (...) {
      lock.lock();
      fail(state, lock, job);
      continue;
    }
    lock.lock();
  }
  state.jobs.erase(std::find(state.jobs.begin(), state.jobs.end(), &job));  // S3
  if (held_ != outer) {
    release(state);
    take(state, lock, outer, nullptr);
  }
}

void Scheduler::fail(Job& job) {
  State& state = *state_;
  Lock lock(state.mutex);
  fail(state, lock, job);
}

// Called in a catch block, with the mutex held.
void Scheduler::fail(State&, Lock& lock, Job& job) {
  const bool first = !std::exchange(job.failed, true);
  for (ReadyHeap& heap : job.ready) {
    while (!heap.empty()) heap.pop();
  }
  job.queued = 0;
  job.changed.notify_all();
  if (!first) return;
  ++job.running;  // the job lasts until its failure is known
  lock.unlock();
  job.fail();
  lock.lock();
  --job.running;
  job.changed.notify_all();
}

// Runs the job's best node among lanes that its owner serves and whose seat this thread has or may take at once.
bool Scheduler::run_best(State& state, Lock& lock, Job& job, uint32_t first_lane, uint32_t last_lane) {
  uint32_t best = kLanes;
  for (uint32_t lane = first_lane; lane <= last_lane; ++lane) {
    if (job.ready[lane].empty() || !owner_serves(state, lane) || !can_take(state, lane)) continue;
    if (lane == kCpu && job.cpu_running >= job.cpu_limit) continue;
    if (best == kLanes || job.ready[best].top() < job.ready[lane].top()) best = lane;
  }
  if (best == kLanes) return false;
  run_node(state, lock, job, best);
  return true;
}

void Scheduler::run_node(State& state, Lock& lock, Job& job, uint32_t lane) {
  if (held_ != lane) {
    release(state);  // S1
    if (lane != kCpu) state.lanes[lane].taken = true;
    held_ = lane;
  }
  const Ready node = job.ready[lane].pop();
  --job.queued;
  ++job.running;
  if (lane == kCpu) ++job.cpu_running;
  lock.unlock();
  try {
    job.run(node);
    lock.lock();
  } catch (...) {
    lock.lock();
    fail(state, lock, job);
  }
  --job.running;
  if (lane == kCpu) --job.cpu_running;
  if (lane != kCpu && !state.lanes[lane].waiters.empty()) release(state);  // S5
  if (job.queued + job.running == 0 || (lane == kCpu && !job.ready[kCpu].empty())) job.changed.notify_all();
}

// ---- the scheduler's threads

Scheduler::Job* Scheduler::best_job(const State& state, uint32_t lane) {
  Job* best = nullptr;
  for (Job* job : state.jobs) {
    if (job->ready[lane].empty()) continue;
    if (best == nullptr || best->ready[lane].top() < job->ready[lane].top()) best = job;
  }
  return best;
}

void Scheduler::serve_lane(State& state, uint32_t lane) {
  serves_ = lane;
  Lock lock(state.mutex);
  for (;;) {
    if (best_job(state, lane) == nullptr) {
      state.lanes[lane].work.wait(lock);
      continue;
    }
    if (held_ != lane) take(state, lock, lane, nullptr);
    Job* const job = best_job(state, lane);  // others may have run them meanwhile
    if (job == nullptr) {
      release(state);
      continue;
    }
    ++job->helpers;
    lock.unlock();
    job->help([&] {
      Lock inside(state.mutex);
      while (best_job(state, lane) == job && can_take(state, lane)) run_node(state, inside, *job, lane);
    });
    lock.lock();
    release(state);
    --job->helpers;
    job->changed.notify_all();
  }
}

void Scheduler::serve_cpu(State& state, Job& job) {
  Lock lock(state.mutex);
  while (job.queued + job.running != 0) {
    if (!run_best(state, lock, job, kCpu, kCpu)) job.changed.wait(lock);
  }
}

}  // namespace mybackend::engine::core
