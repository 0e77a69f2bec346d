// Ctrl-C ends a backward between two nodes.
//
// Only the main thread runs signal handlers, but the node to stop before may be on another thread: the runs nested in
// one call of backward share an Interrupt, through which the main thread, waiting, passes on what a handler raised.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>

#include "csrc/engine/python.h"

namespace mybackend::engine {

class Interrupt {
 public:
  // By the main thread. The innermost run throws it before its next node.
  void raise(std::exception_ptr error) {
    error_ = std::move(error);
    raised_.store(true, std::memory_order_release);  // pairs with the exchange in throw_if_raised()
  }
  void throw_if_raised() {
    if (!raised_.load(std::memory_order_relaxed)) return;
    if (raised_.exchange(false, std::memory_order_acquire)) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  std::atomic<bool> raised_{false};
  std::exception_ptr error_;  // read by who took `raised_`
};

class InterruptCheck {
 public:
  explicit InterruptCheck(Interrupt& shared, bool at_once = false)
      : shared_(shared), main_thread_(python().is_main_thread()), last_(main_thread_ && !at_once ? now() : 0) {}

  // Throws what a pending signal handler raises. Signals are looked at every 50 ms at most, since that takes the GIL.
  void poll() {
    shared_.throw_if_raised();
    if (!main_thread_) return;
    const int64_t time = now();
    if (time - last_ < 50'000'000) return;
    last_ = time;
    python().check_signals();
  }

 private:
  static int64_t now() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);  // 4 ms coarse, a few nanoseconds to read
    return time.tv_sec * INT64_C(1'000'000'000) + time.tv_nsec;
  }

  Interrupt& shared_;
  const bool main_thread_;
  int64_t last_;
};

}  // namespace mybackend::engine
