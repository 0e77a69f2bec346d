// What a host kernel library needs from the host driver: a way to put blocks on a stream.
//
// A kernel library (libmb_kernels_host_*.so) links against nothing of ours. After dlopen the driver calls
// `mb_kernel_library_init` with its HostRuntime and asks `mb_kernel_library_find` for entries by name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "csrc/device/api.h"

namespace mybackend::device {

struct HostRuntime {
  // Runs body(kernel, begin, end) over pieces of [0, blocks), each of at least `grain` blocks, in stream order. The
  // kernel is used in place when the stream is idle and the driver runs inline; otherwise its `bytes` are copied.
  void (*launch)(Stream stream, const void* kernel, size_t bytes,
                 void (*body)(const void* kernel, int64_t begin, int64_t end), int64_t blocks, int64_t grain);
};

inline const HostRuntime*& host_runtime_slot() {
  static const HostRuntime* slot = nullptr;
  return slot;
}
inline const HostRuntime& host_runtime() {
  return *host_runtime_slot();
}

}  // namespace mybackend::device
