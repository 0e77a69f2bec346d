// The host driver's devices: the thread's current one, properties, peers, error records and the last error.
#pragma once

#include "csrc/device/api.h"

namespace mybackend::device::host {

// Remembers a failure for get_last_error and passes it on; every function of the table that fails returns through it.
Status fail(Status status);

int current_device();
bool valid_device(int device);
// Sets the thread's device without a check, e.g. at the start of a worker.
void adopt_device(int device);

Status get_device_count(int* count);
Status get_device(int* device);
Status set_device(int device);
Status get_device_properties(Properties* properties, int device);
Status device_can_access_peer(int* can, int device, int peer);
Status device_enable_peer_access(int peer);
Status get_last_error();
Status error_record(ErrorRecord** record, int device);

}  // namespace mybackend::device::host
