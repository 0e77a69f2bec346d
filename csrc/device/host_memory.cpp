#include "csrc/device/host_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "csrc/device/host_config.h"
#include "csrc/device/host_device.h"
#include "csrc/device/host_stream.h"

namespace mybackend::device::host {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kHugePage = size_t{2} << 20;
struct Region {
  size_t bytes;
  PointerAttributes attributes;
  void (*release)(void*) = &std::free;
  void* context = nullptr;  // what `release` gets
};

// Regions by first address; they never overlap.
struct Regions {
  std::shared_mutex mutex;
  std::map<uintptr_t, Region> by_address;
};

Regions& regions() {
  static Regions* made = new Regions;  // never destroyed: workers may outlive main
  return *made;
}

std::atomic<size_t> used[kMostDevices];

void* take(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (pointer != nullptr && alignment == kHugePage) madvise(pointer, bytes, MADV_HUGEPAGE);
  return pointer;
}

void remember(void* pointer, const Region& region) {
  std::unique_lock lock(regions().mutex);
  regions().by_address[reinterpret_cast<uintptr_t>(pointer)] = region;
}

// The region that begins at `pointer`, if it is of this type.
bool find_start(void* pointer, PointerAttributes::Type type, Region* region) {
  std::shared_lock lock(regions().mutex);
  const auto found = regions().by_address.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == regions().by_address.end() || found->second.attributes.type != type) return false;
  *region = found->second;
  return true;
}

// False when another thread was first.
bool forget(void* pointer) {
  std::unique_lock lock(regions().mutex);
  return regions().by_address.erase(reinterpret_cast<uintptr_t>(pointer)) != 0;
}

bool reserve(int device, size_t bytes) {
  size_t before = used[device].load(std::memory_order_relaxed);
  do {
    if (bytes > config().memory_per_device - before) return false;
  } while (!used[device].compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return true;
}

void release(int device, size_t bytes) {
  used[device].fetch_sub(bytes, std::memory_order_relaxed);
}

void give_back(const Region& region) {
  release(region.attributes.device, region.bytes);
  region.release(region.context);
}

}  // namespace

void lock_memory_for_fork() {
  regions().mutex.lock();
}
void unlock_memory_after_fork() {
  regions().mutex.unlock();
}
void reset_memory_in_child() {
  new (&regions().mutex) std::shared_mutex;
}

Status malloc(void** pointer, size_t bytes) {
  *pointer = nullptr;
  const int device = current_device();
  if (!valid_device(device)) return fail(Status::NoDevice);
  if (bytes == 0) return Status::Success;
  if (!reserve(device, bytes)) return fail(Status::OutOfMemory);
  *pointer = take(bytes);
  if (*pointer == nullptr) {
    release(device, bytes);
    return fail(Status::OutOfMemory);
  }
  remember(*pointer, {bytes, {PointerAttributes::Type::Device, device}, &std::free, *pointer});
  return Status::Success;
}

Status free(void* pointer) {
  if (pointer == nullptr) return Status::Success;
  Region region;
  if (!find_start(pointer, PointerAttributes::Type::Device, &region)) return fail(Status::InvalidValue);
  if (in_host_function()) return fail(Status::NotPermitted);
  drain_device(region.attributes.device);
  if (!forget(pointer)) return fail(Status::InvalidValue);
  give_back(region);
  return Status::Success;
}

bool adopt(int device, void* pointer, size_t bytes, void (*release)(void*), void* context) {
  if (!reserve(device, bytes)) return false;
  remember(pointer, {bytes, {PointerAttributes::Type::Device, device}, release, context});
  return true;
}

bool free_if_idle(void* pointer) {
  Region region;
  if (!find_start(pointer, PointerAttributes::Type::Device, &region)) return false;
  if (!device_idle(region.attributes.device) || !forget(pointer)) return false;
  give_back(region);
  return true;
}

Status mem_get_info(size_t* free_bytes, size_t* total_bytes) {
  const int device = current_device();
  if (!valid_device(device)) return fail(Status::NoDevice);
  *total_bytes = config().memory_per_device;
  *free_bytes = *total_bytes - used[device].load(std::memory_order_relaxed);
  return Status::Success;
}

Status host_alloc(void** pointer, size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return Status::Success;
  *pointer = take(bytes);
  if (*pointer == nullptr) return fail(Status::OutOfMemory);
  remember(*pointer, {bytes, {PointerAttributes::Type::Host, current_device()}});
  return Status::Success;
}

// cudaFreeHost waits as cudaFree does; pinned memory may be in use by any device.
Status host_free(void* pointer) {
  if (pointer == nullptr) return Status::Success;
  Region region;
  if (!find_start(pointer, PointerAttributes::Type::Host, &region)) return fail(Status::InvalidValue);
  if (in_host_function()) return fail(Status::NotPermitted);
  for (int device = 0; device < config().devices; device++) drain_device(device);
  if (!forget(pointer)) return fail(Status::InvalidValue);
  std::free(pointer);
  return Status::Success;
}

Status pointer_get_attributes(PointerAttributes* attributes, const void* pointer) {
  *attributes = {PointerAttributes::Type::Unregistered, -1};
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  std::shared_lock lock(regions().mutex);
  auto after = regions().by_address.upper_bound(address);
  if (after == regions().by_address.begin()) return Status::Success;
  --after;
  if (address - after->first < after->second.bytes) *attributes = after->second.attributes;
  return Status::Success;
}

}  // namespace mybackend::device::host
