// Names and messages of Status, for the host driver: CUDA's names.
#pragma once

#include "csrc/device/api.h"

namespace mybackend::device::host {

const char* get_error_name(Status status);
const char* get_error_string(Status status);

}  // namespace mybackend::device::host
