#include "csrc/device/host_event.h"

#include <array>
#include <memory>
#include <mutex>

#include "csrc/device/host_capture.h"
#include "csrc/device/host_device.h"
#include "csrc/device/host_stream.h"

namespace mybackend::device {

namespace host {
namespace {

// What the most recent record of an event stands for.
struct Mark {
  bool recorded = false;
  std::shared_ptr<Completion> pending;             // nullptr: complete since the record, at `time_ns`
  std::shared_ptr<const Capture::Point> captured;  // set: recorded in a capturing stream
  int64_t time_ns = 0;

  bool done() const { return pending == nullptr || pending->done(); }
  int64_t time() const { return pending == nullptr ? time_ns : pending->time_ns(); }
};

// Locks are shared by events rather than held in them, so that fork can take all of them.
constexpr size_t kLocks = 16;
struct alignas(64) Lock {
  std::mutex mutex;
};
std::array<Lock, kLocks> locks;

}  // namespace
}  // namespace host

struct EventHandle {
  explicit EventHandle(unsigned event_flags) : flags(event_flags) {}

  host::Mark mark() {
    std::lock_guard lock(mutex());
    return mark_;
  }
  void set(host::Mark mark) {
    std::lock_guard lock(mutex());
    std::swap(mark_, mark);
  }

  const unsigned flags;

 private:
  std::mutex& mutex() const { return host::locks[reinterpret_cast<uintptr_t>(this) / 64 % host::kLocks].mutex; }

  host::Mark mark_;
};

namespace host {

void lock_events_for_fork() {
  for (Lock& lock : locks) lock.mutex.lock();
}
void unlock_events_after_fork() {
  for (Lock& lock : locks) lock.mutex.unlock();
}
void reset_events_in_child() {
  for (Lock& lock : locks) new (&lock.mutex) std::mutex;
}

Status event_create(Event* event, unsigned flags) {
  if ((flags & ~unsigned(kEventBlockingSync | kEventDisableTiming)) != 0) return fail(Status::InvalidValue);
  *event = new EventHandle(flags);
  return Status::Success;
}

Status event_destroy(Event event) {
  if (event == nullptr) return fail(Status::InvalidResourceHandle);
  delete event;
  return Status::Success;
}

Status event_record(Event event, Stream handle) {
  if (event == nullptr) return fail(Status::InvalidResourceHandle);
  StreamHandle& stream = resolve(handle);
  Mark mark;
  mark.recorded = true;
  if (stream.capturing()) {
    if (auto point = point_in_capture(stream)) {
      mark.captured = std::make_shared<const Capture::Point>(*std::move(point));
      event->set(std::move(mark));
      return Status::Success;
    }
  }
  if (stream.settled_idle()) {
    if ((event->flags & kEventDisableTiming) == 0) mark.time_ns = now_ns();
    event->set(std::move(mark));
    return Status::Success;
  }
  auto completion = std::make_shared<Completion>();
  mark.pending = completion;
  event->set(std::move(mark));
  stream.enqueue(std::make_unique<Signal>(std::move(completion)));
  return Status::Success;
}

Status event_query(Event event) {
  if (event == nullptr) return fail(Status::InvalidResourceHandle);
  const Mark mark = event->mark();
  if (mark.captured != nullptr) return fail(Status::CapturedEvent);
  return mark.done() ? Status::Success : Status::NotReady;
}

Status event_synchronize(Event event) {
  if (event == nullptr) return fail(Status::InvalidResourceHandle);
  const Mark mark = event->mark();
  if (mark.captured != nullptr) return fail(Status::CapturedEvent);
  if (mark.done()) return Status::Success;
  if (in_host_function()) return fail(Status::NotPermitted);
  mark.pending->wait();
  return Status::Success;
}

Status event_elapsed_time(float* milliseconds, Event start, Event end) {
  if (start == nullptr || end == nullptr || ((start->flags | end->flags) & kEventDisableTiming) != 0)
    return fail(Status::InvalidResourceHandle);
  const Mark from = start->mark(), to = end->mark();
  if (!from.recorded || !to.recorded) return fail(Status::InvalidResourceHandle);
  if (from.captured != nullptr || to.captured != nullptr) return fail(Status::CapturedEvent);
  if (!from.done() || !to.done()) return Status::NotReady;
  *milliseconds = float(double(to.time() - from.time()) * 1e-6);
  return Status::Success;
}

Status stream_wait_event(Stream handle, Event event) {
  if (event == nullptr) return fail(Status::InvalidResourceHandle);
  StreamHandle& stream = resolve(handle);
  const Mark mark = event->mark();
  if (mark.captured != nullptr) {
    const Status status = wait_in_capture(stream, *mark.captured);
    return status == Status::Success ? status : fail(status);
  }
  if (!mark.recorded) return Status::Success;
  if (stream.capturing()) {
    invalidate_capture(stream);
    return fail(Status::StreamCaptureIsolation);
  }
  if (mark.done()) return Status::Success;
  stream.enqueue(make_work([completion = mark.pending] { completion->wait(); }));
  return Status::Success;
}

}  // namespace host
}  // namespace mybackend::device
