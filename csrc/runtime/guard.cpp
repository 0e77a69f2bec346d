#include "csrc/runtime/guard.h"

#include "csrc/runtime/allocator.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/event.h"
#include "csrc/runtime/stream.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wsuggest-override"
#endif

namespace mybackend::runtime {
namespace {

c10::Device device_at(DeviceIndex index) {
  return c10::Device(kDeviceType, index);
}

DeviceIndex index_of(c10::Device device) {
  TORCH_INTERNAL_ASSERT(device.type() == kDeviceType, "expected a mybackend device, got ", device);
  return device.has_index() ? device.index() : current_device();
}

}  // namespace

GuardImpl::GuardImpl(c10::DeviceType type) {
  TORCH_INTERNAL_ASSERT(type == kDeviceType);
}

c10::Device GuardImpl::exchangeDevice(c10::Device device) const {
  return device_at(exchange_device(index_of(device)));
}
c10::Device GuardImpl::getDevice() const {
  return device_at(current_device());
}
void GuardImpl::setDevice(c10::Device device) const {
  if (device.index() < -1) return;  // upstream's autograd engine: the device of a thread that has none
  exchange_device(index_of(device));
}
void GuardImpl::uncheckedSetDevice(c10::Device device) const noexcept {
  int current = 0;
  if (device_count() == 0 || device::api().get_device(&current) != device::Status::Success) return;
  if (device.index() != current) set_device_unchecked(device.index());
}
DeviceIndex GuardImpl::deviceCount() const noexcept {
  return device_count();
}
c10::DeviceCapability GuardImpl::getDeviceCapability(c10::Device) const {
  // Those of csrc/device/dtype.h: quantised types, those below a byte and the 8-bit floats have no kernels here.
  c10::DeviceCapability capability;
  capability.capability_data.capability_bits = 0;
  auto& types = capability.capability_data.supported_scalar_types;
  types.has_Byte = types.has_Char = types.has_Short = types.has_Int = types.has_Long = types.has_Bool = 1;
  types.has_UInt16 = types.has_UInt32 = types.has_UInt64 = 1;
  types.has_Half = types.has_BFloat16 = types.has_Float = types.has_Double = 1;
  types.has_ComplexHalf = types.has_ComplexFloat = types.has_ComplexDouble = 1;
  return capability;
}
void GuardImpl::synchronizeDevice(const DeviceIndex device) const {
  synchronize_device(resolve_device_index(device));
}

c10::Stream GuardImpl::getStream(c10::Device device) const {
  const DeviceIndex index = index_of(device);
  check_device_index(index);
  return current_c10_stream(index);
}
c10::Stream GuardImpl::getDefaultStream(c10::Device device) const {
  return default_stream(index_of(device));
}
c10::Stream GuardImpl::getStreamFromGlobalPool(c10::Device device, bool high_priority) const {
  return stream_from_pool(index_of(device), high_priority ? stream_priority_range().second : 0);
}
c10::Stream GuardImpl::getNewStream(c10::Device device, int priority) const {
  return stream_from_pool(index_of(device), priority);
}
c10::Stream GuardImpl::exchangeStream(c10::Stream stream) const {
  return exchange_stream(stream);
}
bool GuardImpl::queryStream(const c10::Stream& stream) const {
  return query_stream(stream);
}
void GuardImpl::synchronizeStream(const c10::Stream& stream) const {
  synchronize_stream(stream);
}
void* GuardImpl::getStreamNativeHandle(const c10::Stream stream) const {
  return handle_of(stream);
}
bool GuardImpl::isStreamCapturing(const c10::Stream& stream) const {
  DeviceScope scope(stream.device_index());
  return is_capturing(handle_of(stream));
}

void GuardImpl::record(void** event, const c10::Stream& stream, const DeviceIndex device,
                       const c10::EventFlag flag) const {
  TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", static_cast<int>(device),
              " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
  if (*event == nullptr) *event = create_event(stream.device_index(), flag == c10::EventFlag::BACKEND_DEFAULT);
  record_event(static_cast<device::Event>(*event), stream);
}
void GuardImpl::block(void* event, const c10::Stream& stream) const {
  if (event != nullptr) block_stream(static_cast<device::Event>(event), stream);
}
bool GuardImpl::queryEvent(void* event) const {
  return event == nullptr || query_event(static_cast<device::Event>(event));
}
void GuardImpl::synchronizeEvent(void* event) const {
  if (event != nullptr) synchronize_event(static_cast<device::Event>(event), current_device());
}
double GuardImpl::elapsedTime(void* start, void* end, const DeviceIndex device) const {
  TORCH_CHECK(start != nullptr && end != nullptr, "Both events must be recorded before calculating elapsed time.");
  return elapsed_milliseconds(static_cast<device::Event>(start), static_cast<device::Event>(end), device);
}
void GuardImpl::destroyEvent(void* event, const DeviceIndex device) const noexcept {
  if (event != nullptr) destroy_event(static_cast<device::Event>(event), device);
}

void GuardImpl::recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const {
  record_stream(pointer, stream);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, GuardImpl);

}  // namespace mybackend::runtime
