// Streams: the default stream of each device, a pool of 32 for each priority, and streams made by others.
//
// A stream travels through torch as a c10::Stream. Its id says which stream it is:
//   0                                      the default stream of the device (device::Stream nullptr)
//   slot << 4 | priority level << 1 | 1    a stream of the pool
//   anything else (even)                   the address of a device::Stream made elsewhere ("external")
// Streams of the pool are created when first handed out, given round robin and never destroyed, so a c10::Stream is
// valid for ever. Each thread has a current stream for each device.
#pragma once

#include <c10/core/Stream.h>

#include "csrc/device/api.h"
#include "csrc/runtime/device.h"

namespace mybackend::runtime {

constexpr int kStreamsPerPool = 32;
constexpr int kMaxPriorityLevels = 8;

namespace detail {
struct CurrentStreams {
  device::Stream handle[kMaxDevices];
  c10::StreamId id[kMaxDevices];
};
// Zero is right for every thread: the default streams.
extern thread_local constinit CurrentStreams current_streams;
}  // namespace detail

// The calling thread's current stream of the device. A default stream is nullptr and means the one of the current
// device: work is put on it under a DeviceScope.
inline device::Stream current_stream(DeviceIndex device) {
  return detail::current_streams.handle[device];
}

inline c10::Stream current_c10_stream(DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), detail::current_streams.id[device]);
}

inline c10::Stream default_stream(DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), 0);
}

device::Stream handle_of(c10::Stream stream);
// Makes the stream current for its device and returns the one that was.
c10::Stream exchange_stream(c10::Stream stream);
// Lower numbers are more urgent; 0 is normal. Clamped to what the driver knows.
c10::Stream stream_from_pool(DeviceIndex device, int priority);
c10::Stream external_stream(DeviceIndex device, device::Stream handle);
int priority_of(c10::Stream stream);
std::pair<int, int> stream_priority_range();  // least, greatest

bool query_stream(c10::Stream stream);
// Waits, then raises what kernels of the device reported.
void synchronize_stream(c10::Stream stream);
bool is_capturing(device::Stream stream);

// What a stream is called where both words are in use: convertible to the torch value and to the driver's handle.
class Stream {
 public:
  explicit Stream(c10::Stream stream) : stream_(stream), handle_(handle_of(stream)) {}
  static Stream current(DeviceIndex device) { return Stream(current_c10_stream(device)); }
  operator c10::Stream() const { return stream_; }
  operator device::Stream() const { return handle_; }
  DeviceIndex device() const { return stream_.device_index(); }

 private:
  c10::Stream stream_;
  device::Stream handle_;
};

}  // namespace mybackend::runtime
