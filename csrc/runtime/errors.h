// Errors of the device, as the exceptions torch users know.
//
//   MB_DEVICE_CHECK(expression)     a failed device API call becomes torch.AcceleratorError (out of memory:
//                                   torch.OutOfMemoryError). For csrc/runtime; kernels' callers use MB_CHECK.
//   check_device_errors(device)     raises what kernels of the device reported, e.g. an index out of range
//
// `check_device_errors` reads two words: call it after every launch that can fail. On an idle host stream the kernel
// has already run, so the error is raised by the operator that made it. Elsewhere it is raised by the next
// synchronisation,
// `.item()` or copy to the host, and the record is cleared so that the process goes on.
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <string>

#include "csrc/device/api.h"

namespace mybackend::runtime {

[[noreturn]] void throw_device_error(device::Status status, const char* expression, const char* file, int line);

// The record kernels of this device write to; what MB kernels take as their `errors` argument.
device::ErrorRecord* error_record(c10::DeviceIndex device);

// Records what host work of the device threw, unless an error is recorded already; raised like a kernel's report.
void record_exception(c10::DeviceIndex device, std::exception_ptr exception) noexcept;

// Raises the recorded error and clears the record. Precondition: record->code != 0.
[[noreturn]] void throw_recorded_error(device::ErrorRecord* record);

void check_device_errors(c10::DeviceIndex device);

// A number that stands for `message` in a record of kAssertion. Messages are kept for the life of the process, each
// once: they are constants of the program.
int64_t remember_message(const std::string& message);

}  // namespace mybackend::runtime

#define MB_DEVICE_CHECK(expression)                                                          \
  do {                                                                                       \
    const ::mybackend::device::Status mb_status_ = (expression);                             \
    if (mb_status_ != ::mybackend::device::Status::Success) [[unlikely]]                     \
      ::mybackend::runtime::throw_device_error(mb_status_, #expression, __FILE__, __LINE__); \
  } while (0)
