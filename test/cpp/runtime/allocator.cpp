// The caching allocator: invariants C1 to C6 of csrc/runtime/device_cache.h, from several threads and streams.
#include "csrc/runtime/allocator.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "csrc/device/check.h"
#include "csrc/runtime/stream.h"
#include "test/cpp/device/support.h"

using namespace mybackend;
using runtime::allocator;

namespace {

constexpr size_t kMiB = 1 << 20;

void* address_of_new(size_t bytes) {
  return allocator().allocate(bytes).get();
}

TEST_CASE("c2: free neighbours are never left unmerged, whatever threads do") {
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (unsigned id = 0; id < 4; id++) {
    threads.emplace_back([id, &damaged] {
      std::mt19937 random(id);
      std::vector<std::pair<c10::DataPtr, size_t>> kept(64);
      for (int step = 0; step < 4000; step++) {
        auto& [pointer, size] = kept[random() % kept.size()];
        const unsigned char mark = static_cast<unsigned char>(id * 17 + size);
        if (pointer) {
          const auto* bytes = static_cast<const unsigned char*>(pointer.get());
          if (bytes[0] != mark || bytes[size - 1] != mark) damaged++;
        }
        size = 1 + random() % (random() % 8 == 0 ? 3 * kMiB : 20000);
        pointer = allocator().allocate(size);
        auto* bytes = static_cast<unsigned char*>(pointer.get());
        bytes[0] = bytes[size - 1] = static_cast<unsigned char>(id * 17 + size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(damaged.load(), 0);
  for (const auto& segment : allocator().snapshot()) {
    size_t total = 0;
    bool previous_free = false;
    for (const auto& block : segment.blocks) {
      CHECK(!(previous_free && !block.active));
      previous_free = !block.active;
      total += block.size;
    }
    CHECK_EQ(total, segment.total_size);
    CHECK_EQ(segment.blocks.size(), size_t{1});  // everything was freed
  }
}

TEST_CASE("c3: an emptied cache holds nothing") {
  allocator().emptyCache();
  CHECK_EQ(allocator().cache(0).reserved_bytes(), size_t{0});
  CHECK(allocator().snapshot().empty());
}

TEST_CASE("c4: memory used on another stream is not handed out before that stream is done") {
  const c10::Stream other = runtime::stream_from_pool(0, 0);
  test::Gate gate;
  gate.hold(runtime::handle_of(other));
  c10::DataPtr pointer = allocator().allocate(3 * kMiB);
  void* const address = pointer.get();
  runtime::record_stream(pointer, other);
  pointer.clear();
  CHECK(address_of_new(3 * kMiB) != address);
  const auto waiting = allocator().getDeviceStats(0);
  CHECK_EQ(waiting.active_bytes[0].current - waiting.allocated_bytes[0].current, int64_t(3 * kMiB));
  gate.open();
  runtime::synchronize_stream(other);
  static_cast<void>(address_of_new(1));  // collects
  const auto done = allocator().getDeviceStats(0);
  CHECK_EQ(done.active_bytes[0].current, done.allocated_bytes[0].current);
}

TEST_CASE("a stream's own memory is reused at once") {
  const c10::Stream stream = runtime::stream_from_pool(0, 0);
  const c10::Stream before = runtime::exchange_stream(stream);
  void* const address = address_of_new(5000);
  CHECK_EQ(address_of_new(5000), address);
  runtime::exchange_stream(before);
}

// Memory of another allocator, which counts what it gets back.
std::atomic<int> returned{0};
c10::DataPtr foreign_memory(size_t bytes) {
  void* const data = std::malloc(bytes);
  const auto take_back = [](void* data) {
    std::free(data);
    returned++;
  };
  return {data, data, take_back, c10::Device(c10::DeviceType::CPU)};
}

TEST_CASE("c6: adopted memory is counted, and goes back as soon as it is free") {
  returned = 0;
  const auto before = allocator().getDeviceStats(0);
  c10::DataPtr memory = foreign_memory(3 * kMiB + 100);
  void* const address = memory.get();
  c10::DataPtr adopted = allocator().adopt(memory, 3 * kMiB + 100, 0);
  CHECK_EQ(adopted.get(), address);
  CHECK_EQ(adopted.device(), c10::Device(runtime::kDeviceType, 0));
  CHECK(allocator().is_simple_data_ptr(adopted));
  device::PointerAttributes attributes;
  MB_CHECK(device::api().pointer_get_attributes(&attributes, static_cast<char*>(address) + kMiB));
  CHECK(attributes.type == device::PointerAttributes::Type::Device);
  const auto held = allocator().getDeviceStats(0);
  CHECK_EQ(held.allocated_bytes[0].current - before.allocated_bytes[0].current, int64_t(3 * kMiB));
  CHECK_EQ(held.reserved_bytes[0].current - before.reserved_bytes[0].current, int64_t(3 * kMiB));
  memory.clear();
  CHECK_EQ(returned.load(), 0);
  adopted.clear();
  CHECK_EQ(returned.load(), 1);
  const auto after = allocator().getDeviceStats(0);
  CHECK_EQ(after.allocated_bytes[0].current, before.allocated_bytes[0].current);
  CHECK_EQ(after.reserved_bytes[0].current, before.reserved_bytes[0].current);
}

TEST_CASE("c6: adopted memory is kept while any stream works, and no more is adopted until it has gone") {
  returned = 0;
  c10::DataPtr memory = foreign_memory(5 * kMiB), next = foreign_memory(4096);
  c10::DataPtr adopted = allocator().adopt(memory, 5 * kMiB, 0);
  void* const address = adopted.get();
  {
    test::Gate gate;
    gate.hold(runtime::handle_of(runtime::stream_from_pool(0, 0)));
    adopted.clear();
    CHECK_EQ(returned.load(), 0);
    CHECK_EQ(address_of_new(5 * kMiB), address);  // it serves as cached memory meanwhile
    CHECK(!allocator().adopt(next, 4096, 0));
    CHECK(next.get() != nullptr && next.get_context() != nullptr);
  }
  runtime::synchronize_device(0);
  adopted = allocator().adopt(next, 4096, 0);
  CHECK(bool(adopted));
  CHECK_EQ(returned.load(), 1);
  adopted.clear();
  CHECK_EQ(returned.load(), 2);
}

TEST_CASE("c6: threads adopt and free at once") {
  returned = 0;
  std::atomic<int> adopted{0}, damaged{0};
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; id++) {
    threads.emplace_back([&, id] {
      for (int step = 0; step < 500; step++) {
        c10::DataPtr memory = foreign_memory(8192);
        const c10::DataPtr owned = allocator().adopt(memory, 8192, 0);
        if (!owned) continue;
        adopted++;
        std::memset(owned.get(), id, 8192);
        const c10::DataPtr other = allocator().allocate(8192);
        std::memset(other.get(), 99, 8192);
        damaged += static_cast<const char*>(owned.get())[8191] != id;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(damaged.load(), 0);
  CHECK(adopted > 0);
  CHECK_EQ(returned.load(), 2000);
}

TEST_CASE("memory of a private pool is kept until it is released") {
  runtime::DeviceCache& cache = allocator().cache(0);
  const c10::MempoolId_t id{77, 0};
  cache.begin_allocate_to_pool(id, [](device::Stream) { return true; });
  void* const address = address_of_new(kMiB);
  cache.end_allocate_to_pool(id);
  allocator().emptyCache();
  size_t segments = 0;
  for (const auto& segment : allocator().snapshot()) segments += segment.owner_private_pool_id == id;
  CHECK_EQ(segments, size_t{1});
  CHECK(address_of_new(kMiB) != address);
  cache.release_pool(id);
  allocator().emptyCache();
  CHECK(allocator().snapshot().empty());
}

TEST_CASE("c6: nothing is adopted once memory was made for a graph, which may read it later") {
  c10::DataPtr memory = foreign_memory(4096);
  CHECK(!allocator().adopt(memory, 4096, 0));
}

TEST_CASE("statistics agree with what is held") {
  allocator().resetPeakStats(0);
  const auto before = allocator().getDeviceStats(0);
  {
    const c10::DataPtr small = allocator().allocate(100), large = allocator().allocate(2 * kMiB);
    const auto held = allocator().getDeviceStats(0);
    CHECK_EQ(held.allocated_bytes[0].current - before.allocated_bytes[0].current, int64_t(2 * kMiB + 512));
    CHECK_EQ(held.requested_bytes[0].current - before.requested_bytes[0].current, int64_t(2 * kMiB + 100));
    CHECK_EQ(held.allocation[1].current - before.allocation[1].current, int64_t{1});
    CHECK_EQ(held.allocation[2].current - before.allocation[2].current, int64_t{1});
  }
  const auto after = allocator().getDeviceStats(0);
  CHECK_EQ(after.allocated_bytes[0].current, before.allocated_bytes[0].current);
  CHECK_EQ(after.allocated_bytes[0].peak - before.allocated_bytes[0].current, int64_t(2 * kMiB + 512));
}

TEST_CASE("running out of memory raises and leaves the allocator working") {
  bool raised = false;
  try {
    allocator().allocate(size_t{1} << 45);
  } catch (const c10::OutOfMemoryError& error) {
    raised = std::strstr(error.what(), "Tried to allocate 32768.00 GiB") != nullptr;
  }
  CHECK(raised);
  CHECK(address_of_new(100) != nullptr);
}

}  // namespace
