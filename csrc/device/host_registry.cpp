#include "csrc/device/host_registry.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "csrc/device/host_config.h"
#include "csrc/device/host_fork.h"

namespace mybackend::device::host {

Registry& Registry::get() {
  static Registry* registry = [] {
    auto* made = new Registry;
    watch_forks();
    return made;
  }();
  return *registry;
}

Registry::Registry() {
  // With no devices a default stream still exists, so that a launch without set_device has where to go.
  for (int device = 0; device < std::max(config().devices, 1); device++) {
    default_streams_.push_back(std::make_shared<StreamHandle>(device, next_id_++, true, config().async));
    streams_.push_back(default_streams_.back());
  }
}

std::shared_ptr<StreamHandle> Registry::add(int device) {
  std::lock_guard lock(mutex_);
  streams_.push_back(std::make_shared<StreamHandle>(device, next_id_++, false, config().async));
  return streams_.back();
}

void Registry::remove(const StreamHandle* stream) {
  std::shared_ptr<StreamHandle> last;  // released after the lock
  std::lock_guard lock(mutex_);
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](auto& s) { return s.get() == stream; });
  if (found == streams_.end()) return;
  last = std::move(*found);
  streams_.erase(found);
}

std::vector<std::shared_ptr<StreamHandle>> Registry::all() {
  std::lock_guard lock(mutex_);
  return streams_;
}

bool Registry::idle(int device) {
  std::lock_guard lock(mutex_);
  return std::all_of(streams_.begin(), streams_.end(),
                     [&](auto& stream) { return stream->device != device || stream->idle(); });
}

void Registry::lock_for_fork() {
  mutex_.lock();
  for (auto& stream : streams_) stream->lock_for_fork();
}

void Registry::unlock_after_fork() {
  for (auto& stream : streams_) stream->unlock_after_fork();
  mutex_.unlock();
}

void Registry::reset_in_child() {
  new (&mutex_) std::mutex;
  for (auto& stream : streams_) stream->reset_in_child();
}

Workers& Workers::get() {
  static Workers* workers = new Workers;
  return *workers;
}

void Workers::started() {
  // Registered at the first worker, so it runs before the destructors of what was there earlier.
  std::call_once(at_exit_, [] { std::atexit(&Workers::stop_at_exit); });
  running_.fetch_add(1, std::memory_order_acq_rel);
}

void Workers::ended() {
  running_.fetch_sub(1, std::memory_order_acq_rel);
}
void Workers::forget_in_child() {
  running_.store(0, std::memory_order_release);
}

// A host function may be stuck, say on Python's lock after the interpreter ended: exit is never held up for long.
void Workers::stop_at_exit() {
  for (auto& stream : Registry::get().all()) stream->stop_at_exit();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (get().running_.load(std::memory_order_acquire) > 0 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace mybackend::device::host
