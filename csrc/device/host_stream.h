// Streams of the host driver: each a FIFO that runs in the launching thread when it is idle, else in its own worker.
//
// One word says who may run work:
//   kOwned      a thread is running work of this stream: the launching thread (inline) or the worker
//   kPending    work is queued; set until the worker has emptied the queue, so that nothing overtakes it
//   kCapturing  work is recorded instead of run (host_capture.h)
//   kAsync      for ever set in MYBACKEND_HOST_STREAMS=async: never inline
// An inline launch is one compare-and-swap 0 -> kOwned and one back. Everything else takes the mutex.
//
// Invariants: the queue is only run by the owner; an owner that leaves pending work wakes the worker; a stream that is
// neither owned nor pending has finished all its work, and whoever sees that also sees the work's writes.
//
// Ownership: the registry and a running worker hold the stream; the user's handle is a plain pointer. stream_destroy
// lets pending work finish and does not wait for it. No lock is held while work runs or while another lock is taken,
// except by fork (host_fork.cpp).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/device/api.h"
#include "csrc/device/host_work.h"

namespace mybackend::device {

namespace host {
class Capture;
}

struct StreamHandle : std::enable_shared_from_this<StreamHandle> {
 public:
  StreamHandle(int device, int id, bool is_default, bool async);

  const int device;
  const int id;
  const bool is_default;

  bool try_own() {
    uint32_t nothing = 0;
    return state_.compare_exchange_strong(nothing, kOwned, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void disown() {
    uint32_t owned = kOwned;
    if (!state_.compare_exchange_strong(owned, 0, std::memory_order_release, std::memory_order_relaxed)) [[unlikely]]
      hand_over();
  }

  // A worker that has just woken a waiter may not have reported the stream idle yet; these ask under its lock.
  bool try_own_settled();
  bool settled_idle();
  bool idle() const { return (state_.load(std::memory_order_acquire) & (kOwned | kPending)) == 0; }
  bool capturing() const { return (state_.load(std::memory_order_acquire) & kCapturing) != 0; }

  // Queues work for the worker, also while capturing.
  void enqueue(std::unique_ptr<host::Work> work);
  // Waits for all work sent before the call, also while capturing.
  void drain();
  void close();

  // Guarded by host_capture.cpp's lock; set_capturing keeps the state word in step.
  std::shared_ptr<host::Capture> capture;
  size_t capture_index = 0;
  void set_capturing(bool on) {
    on ? state_.fetch_or(kCapturing, std::memory_order_acq_rel)
       : state_.fetch_and(~kCapturing, std::memory_order_acq_rel);
  }

  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }
  void reset_in_child();
  void stop_at_exit();

 private:
  static constexpr uint32_t kOwned = 1, kPending = 2, kCapturing = 4, kAsync = 8;

  bool runnable() const { return (state_.load(std::memory_order_acquire) & (kOwned | kPending)) == kPending; }
  void hand_over();
  void wake_locked();
  void serve();
  void run_queue(std::unique_lock<std::mutex>& lock);
  void delay_at_random();

  alignas(64) std::atomic<uint32_t> state_;
  alignas(64) std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::unique_ptr<host::Work>> queue_;
  bool has_worker_ = false;
  bool closed_ = false;
  bool stopping_ = false;
  uint64_t random_;
};

namespace host {

// Ownership of an idle stream for the length of one inline piece of work.
class Inline {
 public:
  explicit Inline(StreamHandle& stream) : stream_(stream), owned_(stream.try_own() || stream.try_own_settled()) {}
  ~Inline() {
    if (owned_) stream_.disown();
  }
  Inline(const Inline&) = delete;
  Inline& operator=(const Inline&) = delete;
  explicit operator bool() const { return owned_; }

 private:
  StreamHandle& stream_;
  const bool owned_;
};

StreamHandle& default_stream(int device);
inline StreamHandle& resolve(Stream stream, int device_if_default) {
  return stream != nullptr ? *stream : default_stream(device_if_default);
}
StreamHandle& resolve(Stream stream);

// Sends work that cannot run inline: records it when the stream is capturing, else queues it.
Status send(StreamHandle& stream, std::unique_ptr<Work> work);

// Streams of a device, destroyed ones with pending work included.
std::vector<std::shared_ptr<StreamHandle>> streams_of(int device);
// Waits for all work of a device's streams.
void drain_device(int device);
// No stream of the device has work; whoever is told so also sees what the work has written.
bool device_idle(int device);

// True in a host function: there, as in CUDA, the device API must not be called and waiting would never end.
bool in_host_function();

Status device_synchronize();
Status stream_create(Stream* stream, int priority);
Status stream_destroy(Stream stream);
Status stream_query(Stream stream);
Status stream_synchronize(Stream stream);
Status stream_priority_range(int* least, int* greatest);
Status launch_host_function(Stream stream, HostFunction function, void* user_data);

}  // namespace host
}  // namespace mybackend::device
