// Event: a marker on a stream, owned. What c10::Event and torch.Event are served by (guard.h), and what the allocators
// and the engine use directly.
//
// Created on the device of the first stream it is recorded on; recording it again moves it. A device's events may be
// waited for by streams of any device.
#pragma once

#include <c10/core/Stream.h>

#include <utility>

#include "csrc/device/api.h"
#include "csrc/runtime/device.h"

namespace mybackend::runtime {

// The steps shared by Event and the device guard; each sets the device it needs.
device::Event create_event(DeviceIndex device, bool timing);
void destroy_event(device::Event event, DeviceIndex device) noexcept;
void record_event(device::Event event, c10::Stream stream);
void block_stream(device::Event event, c10::Stream stream);
bool query_event(device::Event event);
void synchronize_event(device::Event event, DeviceIndex device);
double elapsed_milliseconds(device::Event start, device::Event end, DeviceIndex device);

class Event {
 public:
  explicit Event(bool timing = false) : timing_(timing) {}
  ~Event() {
    if (handle_ != nullptr) destroy_event(handle_, device_);
  }
  Event(Event&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), device_(other.device_), timing_(other.timing_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    std::swap(timing_, other.timing_);
    return *this;
  }

  bool created() const { return handle_ != nullptr; }
  device::Event handle() const { return handle_; }
  DeviceIndex device() const { return device_; }

  void record(c10::Stream stream) {
    if (handle_ == nullptr) {
      device_ = stream.device_index();
      handle_ = create_event(device_, timing_);
    }
    record_event(handle_, stream);
  }
  // An event that was never recorded has happened.
  void block(c10::Stream stream) const {
    if (handle_ != nullptr) block_stream(handle_, stream);
  }
  bool query() const { return handle_ == nullptr || query_event(handle_); }
  void synchronize() const {
    if (handle_ != nullptr) synchronize_event(handle_, device_);
  }

 private:
  device::Event handle_ = nullptr;
  DeviceIndex device_ = -1;
  bool timing_;
};

}  // namespace mybackend::runtime
