#include "csrc/runtime/device.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string>

#include "csrc/runtime/errors.h"
#include "csrc/runtime/first_use.h"

namespace mybackend::runtime {
namespace {

// The number of devices, or why there are none. Asked of the driver once a process.
struct Discovery {
  int count = 0;
  std::string reason;
  Discovery() noexcept {
    try {
      const device::Status status = device::api().get_device_count(&count);
      if (status != device::Status::Success) {
        count = 0;
        reason = device::api().get_error_string(status);
      } else if (count == 0) {
        reason = "the driver found no device";
      }
      if (count > kMaxDevices) count = kMaxDevices;
    } catch (const std::exception& error) {
      count = 0;
      reason = error.what();
    }
  }
};

const Discovery& discovery() noexcept {
  static const Discovery* found = new Discovery;  // never destroyed: used during exit
  return *found;
}

std::array<std::atomic<bool>, kMaxDevices> contexts;
std::atomic<bool> some_context{false};
std::atomic<void (*)()> first_context_callback{nullptr};
std::atomic<bool> bad_fork{false};

void note_fork_in_child() {
  if (std::string_view(device::api().name) != "host") bad_fork.store(true, std::memory_order_relaxed);
}

}  // namespace

DeviceIndex device_count() noexcept {
  return static_cast<DeviceIndex>(discovery().count);
}

DeviceIndex current_device() {
  int device = 0;
  MB_DEVICE_CHECK(device::api().get_device(&device));
  return static_cast<DeviceIndex>(device);
}

void check_device_index(int64_t device) {
  const int count = discovery().count;
  TORCH_CHECK(count > 0, "No mybackend devices are available: ", discovery().reason);
  TORCH_CHECK(device >= 0 && device < count, "Device index ", device, " is out of range: mybackend has ", count,
              " device(s), mybackend:0 to mybackend:", count - 1);
}

DeviceIndex resolve_device_index(int64_t device) {
  if (device == -1) return current_device();
  check_device_index(device);
  return static_cast<DeviceIndex>(device);
}

void set_device(DeviceIndex device) {
  check_device_index(device);
  MB_DEVICE_CHECK(device::api().set_device(device));
}

void set_device_unchecked(DeviceIndex device) noexcept {
  if (device < 0 || device >= device_count()) return;
  static_cast<void>(device::api().set_device(device));
}

DeviceIndex exchange_device(DeviceIndex device) {
  const DeviceIndex previous = current_device();
  if (device >= 0 && device != previous) set_device(device);
  return previous;
}

const device::Properties& device_properties(DeviceIndex device) {
  static std::mutex mutex;
  static std::array<device::Properties, kMaxDevices> properties;
  static std::array<bool, kMaxDevices> known{};
  check_device_index(device);
  std::lock_guard<std::mutex> guard(mutex);
  if (!known[device]) {
    MB_DEVICE_CHECK(device::api().get_device_properties(&properties[device], device));
    known[device] = true;
  }
  return properties[device];
}

void synchronize_device(DeviceIndex device) {
  DeviceScope scope(device);
  MB_DEVICE_CHECK(device::api().device_synchronize());
  check_device_errors(device);
}

bool has_context(DeviceIndex device) noexcept {
  return device >= 0 && device < kMaxDevices && contexts[device].load(std::memory_order_relaxed);
}

void mark_context(DeviceIndex device) {
  TORCH_CHECK(
      !in_bad_fork(),
      "Cannot re-initialize mybackend in forked subprocess. To use mybackend with multiprocessing, you must use "
      "the 'spawn' start method");
  if (contexts[device].exchange(true)) return;
  if (some_context.exchange(true)) return;
  pthread_atfork(nullptr, nullptr, note_fork_in_child);
  if (auto* const callback = first_context_callback.load()) callback();
}

void on_first_context(void (*callback)()) {
  first_context_callback = callback;
}

bool any_context() noexcept {
  return some_context.load(std::memory_order_relaxed);
}

bool in_bad_fork() noexcept {
  return bad_fork.load(std::memory_order_relaxed);
}

}  // namespace mybackend::runtime
