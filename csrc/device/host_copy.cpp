#include "csrc/device/host_copy.h"

#include <cstring>

#include "csrc/device/host_device.h"
#include "csrc/device/host_memory.h"
#include "csrc/device/host_parallel.h"
#include "csrc/device/host_stream.h"

namespace mybackend::device::host {
namespace {

// Below this a copy is limited by one core's latency, not by its share of the bandwidth.
constexpr int64_t kGrain = 512 << 10;

struct Copy {
  char* destination;
  const char* source;
  size_t bytes;

  // Overlapping ranges move as memmove does, so in one piece.
  void operator()() const {
    const bool apart = destination + bytes <= source || source + bytes <= destination;
    if (!apart) {
      std::memmove(destination, source, bytes);
      return;
    }
    parallel_for(
        0, int64_t(bytes), kGrain,
        [](void* ctx, int64_t begin, int64_t end) {
          const Copy& copy = *static_cast<const Copy*>(ctx);
          std::memcpy(copy.destination + begin, copy.source + begin, size_t(end - begin));
        },
        const_cast<Copy*>(this));
  }
};

struct Fill {
  char* destination;
  int value;
  size_t bytes;

  void operator()() const {
    parallel_for(
        0, int64_t(bytes), kGrain,
        [](void* ctx, int64_t begin, int64_t end) {
          const Fill& fill = *static_cast<const Fill*>(ctx);
          std::memset(fill.destination + begin, fill.value, size_t(end - begin));
        },
        const_cast<Fill*>(this));
  }
};

bool pageable(const void* pointer) {
  PointerAttributes attributes;
  pointer_get_attributes(&attributes, pointer);
  return attributes.type == PointerAttributes::Type::Unregistered;
}

}  // namespace

Status memcpy_async(void* destination, const void* source, size_t bytes, CopyKind kind, Stream handle) {
  if (bytes == 0) return Status::Success;
  if (destination == nullptr || source == nullptr || int(kind) < 0 || int(kind) > int(CopyKind::Default))
    return fail(Status::InvalidValue);
  StreamHandle& stream = resolve(handle);
  const Copy copy{static_cast<char*>(destination), static_cast<const char*>(source), bytes};
  if (Inline own{stream}) {
    copy();
    return Status::Success;
  }
  if (stream.capturing()) return send(stream, make_work(copy));
  const bool wait = kind != CopyKind::DeviceToDevice && (pageable(destination) || pageable(source));
  if (wait && in_host_function()) return fail(Status::NotPermitted);
  const Status status = send(stream, make_work(copy));
  if (wait && status == Status::Success) stream.drain();
  return status;
}

Status memcpy_peer_async(void* destination, int destination_device, const void* source, int source_device, size_t bytes,
                         Stream stream) {
  if (!valid_device(destination_device) || !valid_device(source_device)) return fail(Status::InvalidDevice);
  return memcpy_async(destination, source, bytes, CopyKind::DeviceToDevice, stream);
}

Status memset_async(void* destination, int value, size_t bytes, Stream handle) {
  if (bytes == 0) return Status::Success;
  if (destination == nullptr) return fail(Status::InvalidValue);
  StreamHandle& stream = resolve(handle);
  const Fill fill{static_cast<char*>(destination), value, bytes};
  if (Inline own{stream}) {
    fill();
    return Status::Success;
  }
  return send(stream, make_work(fill));
}

}  // namespace mybackend::device::host
