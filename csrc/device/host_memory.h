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
Status mem_get_info(size_t* free_bytes, size_t* total_bytes);
Status host_alloc(void** pointer, size_t bytes);
Status host_free(void* pointer);
Status pointer_get_attributes(PointerAttributes* attributes, const void* pointer);

}  // namespace mybackend::device::host
