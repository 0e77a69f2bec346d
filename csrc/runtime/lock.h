// Lock: a mutex of one word whose uncontended lock and unlock are one atomic instruction each, inlined.
//
// For the allocators' fast paths, where a call into libpthread is a fifth of the time. A waiter sleeps in the kernel
// (std::atomic::wait), so holding it across a driver call is allowed. States: 0 free, 1 held, 2 held with waiters.
#pragma once

#include <atomic>
#include <cstdint>

namespace mybackend::runtime {

class Lock {
 public:
  void lock() noexcept {
    uint32_t free = 0;
    if (!state_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
      wait();
  }
  void unlock() noexcept {
    if (state_.exchange(0, std::memory_order_release) == 2) [[unlikely]]
      state_.notify_one();
  }

 private:
  __attribute__((noinline)) void wait() noexcept {
    for (int spin = 0; spin < 64; spin++) {
      uint32_t free = 0;
      if (state_.load(std::memory_order_relaxed) == 0 &&
          state_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed))
        return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    while (state_.exchange(2, std::memory_order_acquire) != 0) state_.wait(2, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> state_{0};
};

}  // namespace mybackend::runtime
