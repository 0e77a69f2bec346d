#include "csrc/runtime/copy.h"

#include <ATen/core/CachingHostAllocator.h>

#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {

void copy_between_host_and_device(void* destination, const void* source, size_t bytes, bool to_device,
                                  const c10::DataPtr& host_memory, DeviceIndex device, bool non_blocking) {
  const auto kind = to_device ? device::CopyKind::HostToDevice : device::CopyKind::DeviceToHost;
  MB_DEVICE_CHECK(device::api().memcpy_async(destination, source, bytes, kind, current_stream(device)));
  const c10::Stream stream = current_c10_stream(device);
  if (!non_blocking) return synchronize_stream(stream);
  void* const on_host = to_device ? const_cast<void*>(source) : destination;
  at::getHostAllocator(kDeviceType)->record_event(on_host, host_memory.get_context(), stream);
}

}  // namespace mybackend::runtime
