#include "csrc/engine/core/thread_pool.h"

#include <thread>

namespace mybackend::engine::core {

ThreadPool::ThreadPool(std::function<void()> on_start) : state_(new State), on_start_(std::move(on_start)) {}

void ThreadPool::run(std::function<void()> job) {
  State& state = *state_;
  bool start = false;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    state.jobs.push_back(std::move(job));
    start = state.jobs.size() > state.idle;
    if (start) ++state.threads;
  }
  if (start) {
    std::thread([this, &state] { serve(state, on_start_); }).detach();
  } else {
    state.work.notify_one();
  }
}

void ThreadPool::serve(State& state, const std::function<void()>& on_start) {
  if (on_start) on_start();
  std::unique_lock<std::mutex> lock(state.mutex);
  for (;;) {
    while (state.jobs.empty()) {
      ++state.idle;
      state.work.wait(lock);
      --state.idle;
    }
    std::function<void()> job = std::move(state.jobs.front());
    state.jobs.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

void ThreadPool::forget_threads() {
  state_ = new State;
}

size_t ThreadPool::threads() const {
  const State& state = *state_;
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.threads;
}

}  // namespace mybackend::engine::core
