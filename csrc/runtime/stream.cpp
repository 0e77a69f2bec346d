#include "csrc/runtime/stream.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "csrc/runtime/errors.h"

namespace mybackend::runtime {

namespace detail {
thread_local constinit CurrentStreams current_streams{};
}

namespace {

struct Pool {
  std::array<std::atomic<device::Stream>, kStreamsPerPool> streams{};
  std::atomic<uint32_t> next{0};
};

struct Pools {
  std::mutex creation;
  std::array<std::array<Pool, kMaxPriorityLevels>, kMaxDevices> pool;
};

Pools& pools() {
  static Pools* all = new Pools;  // never destroyed: streams outlive static destructors
  return *all;
}

bool in_pool(c10::StreamId id) {
  return (id & 1) != 0;
}
int level_of(c10::StreamId id) {
  return static_cast<int>(id >> 1 & 7);
}
int slot_of(c10::StreamId id) {
  return static_cast<int>(id >> 4);
}

device::Stream pooled(DeviceIndex device, int level, int slot) {
  std::atomic<device::Stream>& place = pools().pool[device][level].streams[slot];
  device::Stream stream = place.load(std::memory_order_acquire);
  if (stream != nullptr) return stream;
  std::lock_guard<std::mutex> guard(pools().creation);
  stream = place.load(std::memory_order_relaxed);
  if (stream == nullptr) {
    mark_context(device);
    DeviceScope scope(device);
    MB_DEVICE_CHECK(device::api().stream_create(&stream, -level));
    place.store(stream, std::memory_order_release);
  }
  return stream;
}

}  // namespace

std::pair<int, int> stream_priority_range() {
  int least = 0, greatest = 0;
  MB_DEVICE_CHECK(device::api().stream_priority_range(&least, &greatest));
  return {least, std::max(greatest, 1 - kMaxPriorityLevels)};
}

device::Stream handle_of(c10::Stream stream) {
  TORCH_CHECK(stream.device_type() == kDeviceType, "Expected a mybackend stream but got one of ", stream.device());
  const c10::StreamId id = stream.id();
  if (id == 0) return nullptr;
  if (!in_pool(id)) return reinterpret_cast<device::Stream>(id);
  check_device_index(stream.device_index());
  TORCH_CHECK(slot_of(id) < kStreamsPerPool, "Unrecognized mybackend stream ", stream);
  return pooled(stream.device_index(), level_of(id), slot_of(id));
}

c10::Stream exchange_stream(c10::Stream stream) {
  const DeviceIndex device = stream.device_index();
  const device::Stream handle = handle_of(stream);
  check_device_index(device);
  const c10::Stream previous = current_c10_stream(device);
  detail::current_streams.handle[device] = handle;
  detail::current_streams.id[device] = stream.id();
  return previous;
}

c10::Stream stream_from_pool(DeviceIndex device, int priority) {
  check_device_index(device);
  const int level = std::clamp(-priority, 0, -stream_priority_range().second);
  const int slot = static_cast<int>(pools().pool[device][level].next.fetch_add(1) % kStreamsPerPool);
  pooled(device, level, slot);
  const c10::StreamId id = static_cast<c10::StreamId>(slot) << 4 | level << 1 | 1;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id);
}

c10::Stream external_stream(DeviceIndex device, device::Stream handle) {
  check_device_index(device);
  const c10::StreamId id = reinterpret_cast<c10::StreamId>(handle);
  TORCH_CHECK(!in_pool(id), "An external stream must be an aligned address");
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kDeviceType, device), id);
}

int priority_of(c10::Stream stream) {
  return in_pool(stream.id()) ? -level_of(stream.id()) : 0;
}

bool query_stream(c10::Stream stream) {
  DeviceScope scope(stream.device_index());
  const device::Status status = device::api().stream_query(handle_of(stream));
  if (status == device::Status::NotReady) return false;
  MB_DEVICE_CHECK(status);
  return true;
}

void synchronize_stream(c10::Stream stream) {
  DeviceScope scope(stream.device_index());
  MB_DEVICE_CHECK(device::api().stream_synchronize(handle_of(stream)));
  check_device_errors(stream.device_index());
}

bool is_capturing(device::Stream stream) {
  bool capturing = false;
  MB_DEVICE_CHECK(device::api().stream_is_capturing(stream, &capturing));
  return capturing;
}

}  // namespace mybackend::runtime
