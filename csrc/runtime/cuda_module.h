// Compiled kernels under the CUDA driver: cubin or PTX files, through the driver API.
//
// libcuda is opened when the first kernel is loaded, so that this needs no CUDA headers and nothing of CUDA on a
// machine without one. Needs CUDA 12: kernels of a library (cuLibraryLoadData) belong to no context, so one serves all
// devices.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/device/api.h"

namespace mybackend::runtime {

union Slot;
enum class LaunchShape : int;

namespace cuda {

// Raises when there is no libcuda, it is older than CUDA 12, or the file has no such kernel.
void* load_function(const std::string& path, const std::string& name);
void launch_function(void* function, LaunchShape shape, int64_t items, int64_t work, Slot* slots, size_t slot_count,
                     device::Stream stream);

}  // namespace cuda
}  // namespace mybackend::runtime
