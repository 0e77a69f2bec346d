// Memory and copies of the host driver: capacity, attributes, when a copy is done, freeing under work in flight.
#include <cstring>

#include "test/cpp/device/support.h"

using namespace test;

namespace {

size_t free_bytes() {
  size_t free_now = 0, total = 0;
  CHECK_OK(driver().mem_get_info(&free_now, &total));
  return free_now;
}

TEST_CASE("memory is aligned to 256 bytes and counted against the device") {
  const size_t before = free_bytes();
  OwnMemory<char> small(1), large(3 << 20);
  CHECK_EQ(reinterpret_cast<uintptr_t>(small.data) % 256, 0u);
  CHECK_EQ(reinterpret_cast<uintptr_t>(large.data) % 256, 0u);
  CHECK_EQ(before - free_bytes(), size_t{1} + (3 << 20));
}

TEST_CASE("more memory than the device has is out of memory and changes nothing") {
  const size_t before = free_bytes();
  void* pointer = &pointer;
  CHECK_EQ(driver().malloc(&pointer, before + 1), Status::OutOfMemory);
  CHECK(pointer == nullptr);
  CHECK_EQ(driver().malloc(&pointer, SIZE_MAX), Status::OutOfMemory);
  CHECK_EQ(free_bytes(), before);
  CHECK_EQ(driver().get_last_error(), Status::OutOfMemory);
}

TEST_CASE("no bytes are no pointer") {
  void* pointer = &pointer;
  CHECK_OK(driver().malloc(&pointer, 0));
  CHECK(pointer == nullptr);
  CHECK_OK(driver().free(nullptr));
}

TEST_CASE("freeing what is not an allocation is refused") {
  OwnMemory<char> memory(16);
  CHECK_EQ(driver().free(memory.data + 1), Status::InvalidValue);
  CHECK_EQ(driver().host_free(memory.data), Status::InvalidValue);
}

TEST_CASE("a pointer's attributes tell device, pinned and ordinary memory apart, also inside an allocation") {
  CHECK_OK(driver().set_device(1));
  OwnMemory<char> memory(1000);
  CHECK_OK(driver().set_device(0));
  void* pinned = nullptr;
  CHECK_OK(driver().host_alloc(&pinned, 100));
  int ordinary = 0;
  PointerAttributes attributes;
  CHECK_OK(driver().pointer_get_attributes(&attributes, memory.data + 999));
  CHECK_EQ(attributes.type, PointerAttributes::Type::Device);
  CHECK_EQ(attributes.device, 1);
  CHECK_OK(driver().pointer_get_attributes(&attributes, pinned));
  CHECK_EQ(attributes.type, PointerAttributes::Type::Host);
  CHECK_OK(driver().pointer_get_attributes(&attributes, &ordinary));
  CHECK_EQ(attributes.type, PointerAttributes::Type::Unregistered);
  CHECK_EQ(attributes.device, -1);
  CHECK_OK(driver().host_free(pinned));
}

TEST_CASE("free waits for work in flight") {
  OwnStream stream;
  int64_t* data = nullptr;
  CHECK_OK(driver().malloc(reinterpret_cast<void**>(&data), 8));
  Gate gate;
  gate.hold(stream);
  launch(stream, {1, 32, 1}, Assign{data, 1});
  std::atomic<bool> freed{false};
  std::thread freeing([&] {
    CHECK_OK(driver().free(data));
    freed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(!freed);
  gate.open();
  freeing.join();
  CHECK(freed.load());
}

TEST_CASE("a copy from ordinary memory is done on return even when the stream was busy") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  Gate gate;
  gate.hold(stream);
  std::atomic<bool> returned{false};
  std::thread copying([&] {
    int64_t value = 11;
    CHECK_OK(driver().memcpy_async(data, &value, 8, CopyKind::HostToDevice, stream));
    returned = true;
    value = 0;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(!returned);
  gate.open();
  copying.join();
  CHECK_EQ(read<int64_t>(data, stream), 11);
}

TEST_CASE("a copy from pinned memory is queued on a busy stream") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  int64_t* pinned = nullptr;
  CHECK_OK(driver().host_alloc(reinterpret_cast<void**>(&pinned), 8));
  *pinned = 1;
  Gate gate;
  gate.hold(stream);
  CHECK_OK(driver().memcpy_async(data, pinned, 8, CopyKind::HostToDevice, stream));
  *pinned = 2;
  gate.open();
  CHECK_EQ(read<int64_t>(data, stream), 2);
  CHECK_OK(driver().host_free(pinned));
}

TEST_CASE("copies and fills take part in stream order and reach every byte") {
  constexpr size_t kBytes = 5 << 20;
  OwnStream stream;
  OwnMemory<unsigned char> a(kBytes), b(kBytes);
  CHECK_OK(driver().memset_async(a, 7, kBytes, stream));
  CHECK_OK(driver().memcpy_peer_async(b, 0, a, 0, kBytes, stream));
  CHECK_OK(driver().memset_async(a, 0, kBytes, stream));
  std::vector<unsigned char> seen(kBytes);
  CHECK_OK(driver().memcpy_async(seen.data(), b, kBytes, CopyKind::DeviceToHost, stream));
  CHECK_EQ(size_t(std::count(seen.begin(), seen.end(), 7)), kBytes);
}

TEST_CASE("peers reach each other and not themselves") {
  int can = -1;
  CHECK_OK(driver().device_can_access_peer(&can, 0, 1));
  CHECK_EQ(can, 1);
  CHECK_OK(driver().device_can_access_peer(&can, 0, 0));
  CHECK_EQ(can, 0);
  CHECK_OK(driver().device_enable_peer_access(1));
  CHECK_EQ(driver().device_enable_peer_access(1), Status::PeerAccessAlreadyEnabled);
  CHECK_EQ(driver().device_enable_peer_access(0), Status::InvalidDevice);
}

TEST_CASE("the first report of a device's kernels is kept and other devices have their own record") {
  struct Fail {
    ErrorRecord* record;
    MB_DEVICE void operator()(Block block) const { report(record, 3, block.index); }
  };
  ErrorRecord *record = nullptr, *other = nullptr;
  CHECK_OK(driver().error_record(&record, 0));
  CHECK_OK(driver().error_record(&other, 1));
  launch(nullptr, {4, 32, 1}, Fail{record});
  CHECK_OK(driver().stream_synchronize(nullptr));
  CHECK_EQ(record->code, 3);
  CHECK_EQ(record->values[0], 0);
  CHECK_EQ(other->code, 0);
  *record = {};
}

}  // namespace
