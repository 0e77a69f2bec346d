// Raw copies between host and device memory on the device's current stream.
#pragma once

#include <c10/core/Allocator.h>

#include "csrc/runtime/device.h"

namespace mybackend::runtime {

// Copies `bytes`; `to_device` says the direction and `host_memory` owns the host side. Precondition: `device` is
// current. Blocking: has completed on return, and errors that kernels reported before it are raised. Non-blocking:
// pinned memory is not reused before the copy is done; a copy of pageable memory completes before return.
void copy_between_host_and_device(void* destination, const void* source, size_t bytes, bool to_device,
                                  const c10::DataPtr& host_memory, DeviceIndex device, bool non_blocking);

}  // namespace mybackend::runtime
