// Copies and fills of the host driver: stream work like any other.
#pragma once

#include "csrc/device/api.h"

namespace mybackend::device::host {

Status memcpy_async(void* destination, const void* source, size_t bytes, CopyKind kind, Stream stream);
Status memcpy_peer_async(void* destination, int destination_device, const void* source, int source_device, size_t bytes,
                         Stream stream);
Status memset_async(void* destination, int value, size_t bytes, Stream stream);

}  // namespace mybackend::device::host
