// The device guard: how torch (streams, events, device contexts, autograd) reaches this device.
//
// Methods that torch marks noexcept, and everything destructors call, never throw: a missing backward operator must end
// as a Python exception, not in std::terminate.
#pragma once

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/InlineDeviceGuard.h>

#include "csrc/runtime/device.h"

namespace mybackend::runtime {

struct GuardImpl final : public c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kDeviceType;

  GuardImpl() = default;
  explicit GuardImpl(c10::DeviceType type);

  c10::DeviceType type() const override { return kDeviceType; }
  c10::Device exchangeDevice(c10::Device device) const override;
  c10::Device getDevice() const override;
  void setDevice(c10::Device device) const override;
  void uncheckedSetDevice(c10::Device device) const noexcept override;
  DeviceIndex deviceCount() const noexcept override;
  c10::DeviceCapability getDeviceCapability(c10::Device device) const override;
  void synchronizeDevice(const DeviceIndex device) const override;

  c10::Stream getStream(c10::Device device) const override;
  c10::Stream getDefaultStream(c10::Device device) const override;
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority = false) const override;
  c10::Stream getNewStream(c10::Device device, int priority = 0) const override;
  c10::Stream exchangeStream(c10::Stream stream) const override;
  bool queryStream(const c10::Stream& stream) const override;
  void synchronizeStream(const c10::Stream& stream) const override;
  // Not in every torch we build against, hence no `override`.
  void* getStreamNativeHandle(const c10::Stream stream) const;
  bool isStreamCapturing(const c10::Stream& stream) const;

  void record(void** event, const c10::Stream& stream, const DeviceIndex device,
              const c10::EventFlag flag) const override;
  void block(void* event, const c10::Stream& stream) const override;
  bool queryEvent(void* event) const override;
  void synchronizeEvent(void* event) const override;
  double elapsedTime(void* start, void* end, const DeviceIndex device) const override;
  void destroyEvent(void* event, const DeviceIndex device) const noexcept override;

  void recordDataPtrOnStream(const c10::DataPtr& pointer, const c10::Stream& stream) const override;
};

// A c10 device guard without virtual calls, for operators.
using DeviceGuard = c10::impl::InlineDeviceGuard<GuardImpl>;

}  // namespace mybackend::runtime
