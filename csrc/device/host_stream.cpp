#include "csrc/device/host_stream.h"

#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "csrc/device/host_capture.h"
#include "csrc/device/host_config.h"
#include "csrc/device/host_device.h"
#include "csrc/device/host_registry.h"

namespace mybackend::device {

StreamHandle::StreamHandle(int device_index, int stream_id, bool of_device, bool async)
    : device(device_index),
      id(stream_id),
      is_default(of_device),
      state_(async ? kAsync : 0),
      random_(host::config().seed * 0x9e3779b97f4a7c15u + uint64_t(stream_id) * 0xbf58476d1ce4e5b9u + 1) {}

void StreamHandle::enqueue(std::unique_ptr<host::Work> work) {
  std::lock_guard lock(mutex_);
  if (stopping_) return work->abandon();
  queue_.push_back(std::move(work));
  const uint32_t before = state_.fetch_or(kPending, std::memory_order_acq_rel);
  if ((before & kOwned) == 0) wake_locked();  // otherwise the owner hands over
}

void StreamHandle::hand_over() {
  std::lock_guard lock(mutex_);
  const uint32_t before = state_.fetch_and(~kOwned, std::memory_order_acq_rel);
  if ((before & kPending) != 0) wake_locked();
}

bool StreamHandle::try_own_settled() {
  if ((state_.load(std::memory_order_relaxed) & kPending) == 0 || !settled_idle()) return false;
  return try_own();
}

bool StreamHandle::settled_idle() {
  if (idle()) return true;
  std::lock_guard lock(mutex_);
  return idle();
}

void StreamHandle::drain() {
  if (settled_idle()) return;
  auto reached = std::make_shared<host::Completion>();
  enqueue(std::make_unique<host::Signal>(reached));
  reached->wait();
}

void StreamHandle::wake_locked() {
  if (has_worker_) {
    ready_.notify_one();
    return;
  }
  has_worker_ = true;
  host::Workers::get().started();
  std::thread([self = shared_from_this()]() mutable {
    char name[16];
    std::snprintf(name, sizeof(name), "mb_stream_%d", self->id);
    pthread_setname_np(pthread_self(), name);
    host::adopt_device(self->device);
    self->serve();
    self.reset();
    host::Workers::get().ended();
  }).detach();
}

void StreamHandle::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ready_.wait(lock, [&] { return stopping_ || runnable() || (closed_ && idle()); });
    if (stopping_) break;
    if (runnable()) {
      run_queue(lock);
      continue;
    }
    has_worker_ = false;  // a waiter that took the stream from the registry earlier may still queue its signal
    lock.unlock();
    host::Registry::get().remove(this);
    return;
  }
  while (!queue_.empty()) {
    std::unique_ptr<host::Work> work = std::move(queue_.front());
    queue_.pop_front();
    work->abandon();
  }
}

void StreamHandle::run_queue(std::unique_lock<std::mutex>& lock) {
  state_.fetch_or(kOwned, std::memory_order_acq_rel);
  while (!queue_.empty() && !stopping_) {
    std::unique_ptr<host::Work> work = std::move(queue_.front());
    queue_.pop_front();
    if (work->is_signal()) {
      work->run();
      continue;
    }
    lock.unlock();
    if ((state_.load(std::memory_order_relaxed) & kAsync) != 0) delay_at_random();
    work->run();
    work.reset();
    lock.lock();
  }
  state_.fetch_and(queue_.empty() ? ~(kOwned | kPending) : ~kOwned, std::memory_order_acq_rel);
}

// Most work goes at once; some waits long enough for another stream to overtake it.
void StreamHandle::delay_at_random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const uint64_t draw = random_ >> 33;
  if (draw % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(20 + draw / 4 % 300));
  else if (draw % 4 == 1)
    std::this_thread::yield();
}

void StreamHandle::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (!idle()) {  // work that only wakes the worker when the present owner, who may be running inline, is done
      queue_.push_back(host::make_work([] {}));
      state_.fetch_or(kPending, std::memory_order_acq_rel);
      wake_locked();
      return;
    }
    if (has_worker_) {
      ready_.notify_one();
      return;
    }
  }
  host::Registry::get().remove(this);
}

// The parent's workers do not exist here, and its pending work is the parent's to do.
void StreamHandle::reset_in_child() {
  new (&mutex_) std::mutex;
  new (&ready_) std::condition_variable;
  state_.fetch_and(kAsync, std::memory_order_acq_rel);
  has_worker_ = false;
  capture.reset();
  std::deque<std::unique_ptr<host::Work>> dropped;
  dropped.swap(queue_);
  for (auto& work : dropped) work->abandon();
}

void StreamHandle::stop_at_exit() {
  std::lock_guard lock(mutex_);
  stopping_ = true;
  ready_.notify_all();
}

namespace host {
namespace {

thread_local bool inside_host_function = false;

void call_host_function(HostFunction function, void* user_data) {
  inside_host_function = true;
  function(user_data);
  inside_host_function = false;
}

}  // namespace

bool in_host_function() {
  return inside_host_function;
}

StreamHandle& default_stream(int device) {
  return Registry::get().default_stream(device);
}
StreamHandle& resolve(Stream stream) {
  return resolve(stream, current_device());
}

Status send(StreamHandle& stream, std::unique_ptr<Work> work) {
  if (stream.capturing()) {
    if (const auto status = record_if_capturing(stream, work)) return fail(*status);
  }
  stream.enqueue(std::move(work));
  return Status::Success;
}

std::vector<std::shared_ptr<StreamHandle>> streams_of(int device) {
  auto streams = Registry::get().all();
  std::erase_if(streams, [&](auto& stream) { return stream->device != device; });
  return streams;
}

void drain_device(int device) {
  for (auto& stream : streams_of(device)) stream->drain();
}

bool device_idle(int device) {
  return Registry::get().idle(device);
}

Status device_synchronize() {
  if (in_host_function()) return fail(Status::NotPermitted);
  const auto streams = streams_of(current_device());
  for (auto& stream : streams)
    if (stream->capturing()) return fail(invalidate_capture(*stream));
  for (auto& stream : streams) stream->drain();
  return Status::Success;
}

Status stream_create(Stream* stream, int /*priority*/) {
  *stream = Registry::get().add(current_device()).get();
  return Status::Success;
}

Status stream_destroy(Stream stream) {
  if (stream == nullptr || stream->is_default) return fail(Status::InvalidResourceHandle);
  if (stream->capturing()) leave_capture(*stream);
  stream->close();
  return Status::Success;
}

Status stream_query(Stream handle) {
  StreamHandle& stream = resolve(handle);
  if (stream.capturing()) return fail(invalidate_capture(stream));
  return stream.settled_idle() ? Status::Success : Status::NotReady;
}

Status stream_synchronize(Stream handle) {
  StreamHandle& stream = resolve(handle);
  if (stream.capturing()) return fail(invalidate_capture(stream));
  if (stream.settled_idle()) return Status::Success;
  if (in_host_function()) return fail(Status::NotPermitted);
  stream.drain();
  return Status::Success;
}

// Priorities are accepted and change nothing: the operating system shares out the cores.
Status stream_priority_range(int* least, int* greatest) {
  *least = 0;
  *greatest = -1;
  return Status::Success;
}

Status launch_host_function(Stream handle, HostFunction function, void* user_data) {
  if (function == nullptr) return fail(Status::InvalidValue);
  StreamHandle& stream = resolve(handle);
  if (Inline own{stream}) {
    call_host_function(function, user_data);
    return Status::Success;
  }
  return send(stream, make_work([=] { call_host_function(function, user_data); }));
}

}  // namespace host
}  // namespace mybackend::device
