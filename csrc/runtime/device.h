// Devices: how many there are, which one is current, what they can do.
//
// The current device lives in the driver (thread-local, as in CUDA), so that libraries that move it are seen.
// A driver that cannot start (a forced one that is absent, no GPU) is reported as no devices by the functions that must
// not throw, and with its reason by the first function that needs one.
#pragma once

#include <c10/core/Device.h>

#include "csrc/device/api.h"

namespace mybackend::runtime {

using c10::DeviceIndex;
constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
constexpr int kMaxDevices = 64;

DeviceIndex device_count() noexcept;
DeviceIndex current_device();
void set_device(DeviceIndex device);
void set_device_unchecked(DeviceIndex device) noexcept;
// Makes `device` current and returns the one that was; -1 changes nothing.
DeviceIndex exchange_device(DeviceIndex device);

// Raises unless `device` names a device.
void check_device_index(int64_t device);
// -1 is the current device; anything else is checked.
DeviceIndex resolve_device_index(int64_t device);

const device::Properties& device_properties(DeviceIndex device);
// Waits for all streams of the device, then raises what its kernels reported.
void synchronize_device(DeviceIndex device);

// A device has a context once memory, a stream or an event was asked of it.
bool has_context(DeviceIndex device) noexcept;
void mark_context(DeviceIndex device);
bool any_context() noexcept;
// A child forked after a context existed, under a driver that does not survive fork.
bool in_bad_fork() noexcept;

// Makes a device current for a scope. Neither constructor nor destructor touches the driver when it already is.
class DeviceScope {
 public:
  explicit DeviceScope(DeviceIndex device) : previous_(exchange_device(device)), current_(device) {}
  ~DeviceScope() {
    if (previous_ != current_) set_device_unchecked(previous_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  DeviceIndex previous_;
  DeviceIndex current_;
};

}  // namespace mybackend::runtime
