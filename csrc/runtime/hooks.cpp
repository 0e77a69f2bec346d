// Hooks: what torch asks of the device outside dispatch (pinned memory, generators, resizing, current device).
//
// isBuilt and isAvailable never throw and create no context, so that they may be asked before a fork.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "csrc/runtime/allocator.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/generator.h"
#include "csrc/runtime/host_allocator.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {
namespace {

struct Hooks final : public at::PrivateUse1HooksInterface {
  void init() const override { check_device_index(0); }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(DeviceIndex device) const override { return has_context(device); }

  DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(DeviceIndex device) const override { set_device(device); }
  DeviceIndex getCurrentDevice() const override { return current_device(); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override { return exchange_device(device); }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return exchange_device(device); }

  at::Device getDeviceFromPtr(void* data) const override {
    device::PointerAttributes attributes{};
    MB_DEVICE_CHECK(device::api().pointer_get_attributes(&attributes, data));
    TORCH_CHECK(attributes.type == device::PointerAttributes::Type::Device,
                "The specified pointer resides on host memory and is not registered with any mybackend device.");
    return at::Device(kDeviceType, static_cast<DeviceIndex>(attributes.device));
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned(data); }
  at::Allocator* getPinnedMemoryAllocator() const override {
    check_device_index(0);
    return &host_allocator();
  }

  const at::Generator& getDefaultGenerator(DeviceIndex device) const override { return default_generator(device); }
  at::Generator getNewGenerator(DeviceIndex device = -1) const override { return make_generator(device); }

  // Keeps the bytes both sizes have, like a storage resize on CUDA.
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    DeviceScope scope(impl->device().index());
    const DeviceIndex device = impl->device().index();
    c10::DataPtr data = allocator().allocate_on(bytes, device);
    const size_t kept = std::min(bytes, impl->nbytes());
    if (kept > 0)
      MB_DEVICE_CHECK(device::api().memcpy_async(data.get(), impl->data(), kept, device::CopyKind::DeviceToDevice,
                                                 current_stream(device)));
    // The old memory may belong to another stream's pool while the copy above still reads it.
    record_stream(impl->data_ptr(), current_c10_stream(device));
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(bytes);
  }
};

const bool kRegistered = [] {
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  return true;
}();

}  // namespace
}  // namespace mybackend::runtime
