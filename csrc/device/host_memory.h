// Memory of the host driver: device memory is aligned host memory, counted against a simulated capacity.
#pragma once

#include "csrc/device/api.h"

namespace mybackend::device::host {

void lock_memory_for_fork();
void unlock_memory_after_fork();
void reset_memory_in_child();

Status malloc(void** pointer, size_t bytes);
// As in CUDA, waits for all work of the memory's device first.
Status free(void* pointer);
// Memory that another allocator has made becomes memory of `device`: free() calls `release(context)`. False, and
// nothing has happened, when the device's capacity does not allow it.
bool adopt(int device, void* pointer, size_t bytes, void (*release)(void*), void* context);
// As free(), but never waits: false, and nothing has happened, while any stream of the memory's device has work.
bool free_if_idle(void* pointer);
Status mem_get_info(size_t* free_bytes, size_t* total_bytes);
Status host_alloc(void** pointer, size_t bytes);
Status host_free(void* pointer);
Status pointer_get_attributes(PointerAttributes* attributes, const void* pointer);

}  // namespace mybackend::device::host
