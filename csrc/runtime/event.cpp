#include "csrc/runtime/event.h"

#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {

device::Event create_event(DeviceIndex device, bool timing) {
  mark_context(device);
  DeviceScope scope(device);
  device::Event event = nullptr;
  MB_DEVICE_CHECK(device::api().event_create(&event, timing ? device::kEventDefault : device::kEventDisableTiming));
  return event;
}

void destroy_event(device::Event event, DeviceIndex device) noexcept {
  // Unchecked: runs in destructors, where the process may be going down.
  int previous = 0;
  if (device::api().get_device(&previous) != device::Status::Success) return;
  set_device_unchecked(device);
  static_cast<void>(device::api().event_destroy(event));
  set_device_unchecked(static_cast<DeviceIndex>(previous));
}

void record_event(device::Event event, c10::Stream stream) {
  DeviceScope scope(stream.device_index());
  MB_DEVICE_CHECK(device::api().event_record(event, handle_of(stream)));
}

void block_stream(device::Event event, c10::Stream stream) {
  DeviceScope scope(stream.device_index());
  MB_DEVICE_CHECK(device::api().stream_wait_event(handle_of(stream), event));
}

bool query_event(device::Event event) {
  const device::Status status = device::api().event_query(event);
  if (status == device::Status::NotReady) return false;
  MB_DEVICE_CHECK(status);
  return true;
}

void synchronize_event(device::Event event, DeviceIndex device) {
  MB_DEVICE_CHECK(device::api().event_synchronize(event));
  check_device_errors(device);
}

double elapsed_milliseconds(device::Event start, device::Event end, DeviceIndex device) {
  DeviceScope scope(device);
  float milliseconds = 0;
  MB_DEVICE_CHECK(device::api().event_elapsed_time(&milliseconds, start, end));
  return milliseconds;
}

}  // namespace mybackend::runtime
