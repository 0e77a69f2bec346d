// For tests that are linked with csrc/kernels/*.cu directly: entries are found in the program itself, and memory,
// streams and events are the host driver's. With MB_TEST_THREADS kernels run at once on real threads and ignore the
// stream.
#pragma once

#include "csrc/device/api.h"
#include "csrc/device/host_kernels.h"
#include "csrc/device/kernel.h"

namespace test {

// Before the first use of api().
inline void use_linked_kernels() {
  static mybackend::device::Api table = mybackend::device::host_api();
  table.find_kernel = &mybackend::device::find_in_library;
  mybackend::device::host_runtime_slot() = &mybackend::device::host::kernel_runtime();
  mybackend::device::set_driver(table);
}

}  // namespace test
