#include "csrc/engine/threads.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "csrc/engine/core/thread_pool.h"
#include "csrc/engine/shared.h"

namespace mybackend::engine {
namespace {

void begin_thread() {
  at::init_num_threads();
  python().attach_thread();
}

core::ThreadPool& pool() {
  static core::ThreadPool* const pool = new core::ThreadPool(begin_thread);
  return *pool;
}

void start_worker(uint32_t lane, std::function<void()> serve) {
  std::thread([lane, serve = std::move(serve)] {
    pthread_setname_np(pthread_self(), c10::str("mb_autograd_", lane - 1).c_str());
    begin_thread();
    serve();
  }).detach();
}

void forget_threads() {
  scheduler().forget_threads();
  pool().forget_threads();
}

}  // namespace

core::Scheduler& scheduler() {
  static core::Scheduler* const made = [] {
    auto* const scheduler =
        new core::Scheduler({start_worker, [](std::function<void()> job) { pool().run(std::move(job)); }});
    pthread_atfork(nullptr, nullptr, forget_threads);
    return scheduler;
  }();
  return *made;
}

void run_on_another_thread(const std::function<void()>& work, Interrupt& interrupt) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  const ThreadState& caller = this_thread();
  core::Scheduler& threads = scheduler();
  const uint32_t seat = core::Scheduler::held();
  const core::Scheduler::Away away(threads);
  threads.sit(core::Scheduler::kCpu, nullptr);  // who waits holds no seat
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
  lock.unlock();
  threads.sit(seat, nullptr);
}

}  // namespace mybackend::engine
