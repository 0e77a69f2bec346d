#include "csrc/engine/threads.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "csrc/engine/core/thread_pool.h"
#include "csrc/engine/run.h"

namespace mybackend::engine {
namespace {

core::ThreadPool& pool() {
  static core::ThreadPool* const pool = [] {
    auto* const made = new core::ThreadPool([] {
      at::init_num_threads();
      python().attach_thread();
    });
    pthread_atfork(nullptr, nullptr, [] { engine::pool().forget_threads(); });
    return made;
  }();
  return *pool;
}

}  // namespace

void run_on_another_thread(const std::function<void()>& work, Interrupt& interrupt) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  const ThreadState& caller = this_thread();
  pool().run([&, depth = caller.depth, shared = caller.interrupt] {
    ThreadState& thread = this_thread();
    thread.depth = depth;
    thread.interrupt = shared;
    work();
    thread.depth = 0;
    thread.interrupt = nullptr;
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_one();
  });
  const bool main_thread = python().is_main_thread();
  std::unique_lock<std::mutex> lock(mutex);
  while (!done) {
    if (!main_thread) {
      changed.wait(lock);
    } else if (changed.wait_for(lock, std::chrono::milliseconds(50)) == std::cv_status::timeout && !done) {
      lock.unlock();
      try {
        python().check_signals();
      } catch (...) {
        interrupt.raise(std::current_exception());
      }
      lock.lock();
    }
  }
}

}  // namespace mybackend::engine
