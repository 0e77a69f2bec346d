// The two exports of a host kernel library; compiled into each ISA variant together with csrc/kernels/*.cu.
#include "csrc/device/host_runtime.h"
#include "csrc/device/kernel.h"

extern "C" __attribute__((visibility("default"))) void mb_kernel_library_init(
    const mybackend::device::HostRuntime* runtime) {
  mybackend::device::host_runtime_slot() = runtime;
}

extern "C" __attribute__((visibility("default"))) void* mb_kernel_library_find(const char* name) {
  return mybackend::device::find_in_library(name);
}
