#include "csrc/runtime/errors.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "csrc/device/dtype.h"
#include "csrc/device/errors.h"
#include "csrc/device/kernel.h"
#include "csrc/runtime/device.h"

namespace mybackend::runtime {
namespace {

std::array<std::atomic<device::ErrorRecord*>, kMaxDevices> records;

// What host work threw, the first of each device; guarded by `exceptions_lock`.
std::array<std::exception_ptr, kMaxDevices> exceptions;
std::mutex exceptions_lock;

// Messages of assertions in the order they were first seen, and the way back; guarded by `messages_lock`.
std::vector<std::string> messages;
std::unordered_map<std::string, int64_t> message_numbers;
std::mutex messages_lock;

std::string message_of(int64_t number) {
  std::lock_guard<std::mutex> lock(messages_lock);
  return messages.at(static_cast<size_t>(number));
}

device::ErrorRecord take(device::ErrorRecord* record) {
  device::ErrorRecord taken;
  taken.code = __atomic_load_n(&record->code, __ATOMIC_ACQUIRE);
  for (int i = 0; i < 4; i++) taken.values[i] = record->values[i];
  __atomic_store_n(&record->code, 0, __ATOMIC_RELEASE);
  return taken;
}

// Called while an exception of a kernel's entry point is in flight.
void translate() {
  try {
    throw;
  } catch (const DTypeNotImplemented& error) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, error.what());
  } catch (...) {
  }
}

[[maybe_unused]] const bool translates = (device::exception_translator.store(&translate), true);

}  // namespace

void throw_device_error(device::Status status, const char* expression, const char* file, int line) {
  const device::Api& api = device::api();
  const std::string what = c10::str("mybackend error: ", api.get_error_string(status), " (", api.get_error_name(status),
                                    ", driver ", api.name, ") in ", expression, " at ", file, ":", line);
  const c10::SourceLocation place{__func__, file, static_cast<uint32_t>(line)};
  if (status == device::Status::OutOfMemory) throw c10::OutOfMemoryError(place, what);
  throw c10::AcceleratorError(place, static_cast<int32_t>(status), what);
}

int64_t remember_message(const std::string& message) {
  std::lock_guard<std::mutex> lock(messages_lock);
  const auto [found, isnew] = message_numbers.try_emplace(message, static_cast<int64_t>(messages.size()));
  if (isnew) messages.push_back(message);
  return found->second;
}

device::ErrorRecord* error_record(c10::DeviceIndex device) {
  device::ErrorRecord* record = records[device].load(std::memory_order_acquire);
  if (record == nullptr) [[unlikely]] {
    check_device_index(device);
    MB_DEVICE_CHECK(device::api().error_record(&record, device));
    records[device].store(record, std::memory_order_release);
  }
  return record;
}

void record_exception(c10::DeviceIndex device, std::exception_ptr exception) noexcept {
  device::ErrorRecord* record = records[device].load(std::memory_order_acquire);
  if (record == nullptr && device::api().error_record(&record, device) != device::Status::Success) return;
  std::lock_guard<std::mutex> guard(exceptions_lock);
  if (__atomic_load_n(&record->code, __ATOMIC_ACQUIRE) != device::kNoError) return;
  exceptions[device] = std::move(exception);
  record->values[0] = device;
  int none = device::kNoError;
  __atomic_compare_exchange_n(&record->code, &none, int(device::kException), false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void throw_recorded_error(device::ErrorRecord* record) {
  const auto [code, values] = take(record);

  switch (static_cast<device::ErrorCode>(code)) {
    case device::kIndexOutOfRange:
      TORCH_CHECK_INDEX(false, "index ", values[0], " is out of bounds for dimension ", values[2], " with size ",
                        values[1]);
    case device::kIndexCopyOutOfRange:
      TORCH_CHECK_INDEX(false, "index_copy_(): index ", values[0], " is out of bounds for dimension ", values[2],
                        " with size ", values[1]);
    case device::kGatherIndexOutOfRange:
      TORCH_CHECK(false, "index ", values[0], " is out of bounds for dimension ", values[2], " with size ", values[1]);
    case device::kIndexOutOfRangeInSelf:
      TORCH_CHECK_INDEX(false, "index out of range in self");
    case device::kTakeIndexOutOfRange:
      TORCH_CHECK_INDEX(false, "out of range: tried to access index ", values[0], " on a tensor of ", values[1],
                        " elements.");
    case device::kTargetOutOfRange:
      TORCH_CHECK_INDEX(false, "Target ", values[0], " is out of bounds.");
    case device::kDivisionByZero:
      TORCH_CHECK(false, "ZeroDivisionError");
    case device::kNegativeProbability:
      TORCH_CHECK(false, "probability tensor contains either `inf`, `nan` or element < 0");
    case device::kProbabilityOutOfRange:
      TORCH_CHECK(false, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
    case device::kProbabilitySum:
      TORCH_CHECK(false, "invalid multinomial distribution (sum of probabilities <= 0)");
    case device::kInvalidValue:
      TORCH_CHECK(false, "value ", values[0], " is out of range: expected ", values[1], " to ", values[2]);
    case device::kOutsideUnitInterval:
      TORCH_CHECK(false, "all elements of input should be between 0 and 1");
    case device::kCompiledIndexOutOfRange:
      TORCH_CHECK_INDEX(false, "index ", values[0], " is out of bounds for dimension with size ", values[1]);
    case device::kAssertion:
      TORCH_CHECK(false, message_of(values[0]));
    case device::kException: {
      std::exception_ptr exception;
      {
        std::lock_guard<std::mutex> guard(exceptions_lock);
        exception = std::exchange(exceptions[values[0]], nullptr);
      }
      std::rethrow_exception(exception);
    }
    default:
      TORCH_CHECK(false, "a mybackend kernel reported error ", code, " (", values[0], ", ", values[1], ", ", values[2],
                  ", ", values[3], ")");
  }
}

void check_device_errors(c10::DeviceIndex device) {
  device::ErrorRecord* record = error_record(device);
  if (__atomic_load_n(&record->code, __ATOMIC_ACQUIRE) != 0) [[unlikely]]
    throw_recorded_error(record);
  MB_DEVICE_CHECK(device::api().get_last_error());
}

}  // namespace mybackend::runtime
