// The pinned host allocator: page-locked memory of the driver, cached.
//
// A block goes back to its bin (a power of two) only when every copy that was noted for it with `record_event` has
// happened; until then it waits in a queue. Blocks are known by address too, since a copy sees a tensor's data pointer.
// Never destroyed: storages that live until the process ends free into it.
#pragma once

#include <ATen/core/CachingHostAllocator.h>

namespace mybackend::runtime {

at::HostAllocator& host_allocator();

// Pinned memory, whoever allocated it. False, without touching the driver, while no device has been used.
bool is_pinned(const void* pointer);

// To be called after a non-blocking copy between this pinned memory and the device was put on `stream`.
bool record_host_event(const c10::DataPtr& pointer, c10::Stream stream);

}  // namespace mybackend::runtime
