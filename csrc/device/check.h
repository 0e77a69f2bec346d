// MB_CHECK: turns a failed device API call into an exception that names the expression, the error and the place.
#pragma once

#include <stdexcept>
#include <string>

#include "csrc/device/api.h"

namespace mybackend::device {

class DeviceError : public std::runtime_error {
 public:
  DeviceError(Status status, const std::string& what) : std::runtime_error(what), status_(status) {}
  Status status() const noexcept { return status_; }

 private:
  Status status_;
};

[[noreturn]] inline void raise(Status status, const char* expression, const char* file, int line) {
  const Api& table = api();
  throw DeviceError(
      status, std::string("mybackend ") + table.name + " driver error: " + table.get_error_string(status) + " (" +
                  table.get_error_name(status) + ") in " + expression + " at " + file + ":" + std::to_string(line));
}

}  // namespace mybackend::device

#define MB_CHECK(expression)                                                   \
  do {                                                                         \
    const ::mybackend::device::Status mb_status_ = (expression);               \
    if (mb_status_ != ::mybackend::device::Status::Success) [[unlikely]]       \
      ::mybackend::device::raise(mb_status_, #expression, __FILE__, __LINE__); \
  } while (0)
