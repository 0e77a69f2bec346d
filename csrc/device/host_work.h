// Work: one piece of stream work that outlives the call that sent it, and Completion: the mark that work was reached.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace mybackend::device::host {

class Work {
 public:
  virtual ~Work() = default;
  virtual void run() = 0;  // any number of times: a graph runs its nodes at each launch
  // Called instead of run() when the work will never run: at process exit and in a forked child.
  virtual void abandon() {}
  // Runs under the stream's lock, so that whoever it wakes finds the stream's state settled.
  virtual bool is_signal() const { return false; }
};

template <class F>
class Call final : public Work {
 public:
  explicit Call(F f) : f_(std::move(f)) {}
  void run() override { f_(); }

 private:
  F f_;
};

template <class F>
std::unique_ptr<Work> make_work(F f) {
  return std::make_unique<Call<F>>(std::move(f));
}

inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Fired once. Waits on a futex rather than a mutex, so that a fork at any moment leaves it usable in the child.
class Completion {
 public:
  void fire() {
    time_ns_ = now_ns();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const {
    while (!done()) done_.wait(0, std::memory_order_acquire);
  }
  int64_t time_ns() const { return time_ns_; }  // only when done

 private:
  std::atomic<int> done_{0};
  int64_t time_ns_ = 0;
};

// Fires even when abandoned: whoever waits must not wait for ever.
class Signal final : public Work {
 public:
  explicit Signal(std::shared_ptr<Completion> completion) : completion_(std::move(completion)) {}
  void run() override { completion_->fire(); }
  void abandon() override { completion_->fire(); }
  bool is_signal() const override { return true; }

 private:
  std::shared_ptr<Completion> completion_;
};

}  // namespace mybackend::device::host
