// Lock: a spin lock of one byte for the allocators' fast path. Locking is one atomic instruction, unlocking a plain
// store.
//
// A waiter spins briefly, then yields, then sleeps, so holding it across a driver call (a new segment, rare) costs
// other threads time but no work.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>

namespace mybackend::runtime {

class Lock {
 public:
  void lock() noexcept {
    // Acquire pairs with the release in unlock().
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  __attribute__((noinline)) void wait() noexcept {
    for (int tries = 0;; tries++) {
      if (!held_.load(std::memory_order_relaxed) && !held_.exchange(true, std::memory_order_acquire)) return;
      if (tries < 64) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (tries < 128) {
        sched_yield();
      } else {
        const timespec pause{0, 20'000};
        nanosleep(&pause, nullptr);
      }
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace mybackend::runtime
