// ThreadPool: threads for work that must not run on the caller's stack, reused as they fall idle.
//
// A job may block for as long as it likes, also on another job: a job never waits for a thread, since one is started
// whenever none is idle. Threads live until the process ends; nothing joins them, and an idle one holds no lock.
// After fork() the child has none of them: forget_threads() makes the pool as new.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace mybackend::engine::core {

class ThreadPool {
 public:
  // `on_start` runs first on every thread.
  explicit ThreadPool(std::function<void()> on_start = {});
  ~ThreadPool() = delete;  // its threads use it until the process ends

  // `job` must not throw.
  void run(std::function<void()> job);
  void forget_threads();

  size_t threads() const;

 private:
  struct State {
    mutable std::mutex mutex;
    std::condition_variable work;
    std::deque<std::function<void()>> jobs;  // taken by idle threads only
    size_t idle = 0;                         // guarded by mutex, as all here
    size_t threads = 0;
  };
  static void serve(State& state, const std::function<void()>& on_start);

  std::atomic<State*> state_;  // never freed: a thread may hold it while the process ends or forks
  const std::function<void()> on_start_;
};

}  // namespace mybackend::engine::core
