// The caching allocator: invariants C1 to C5 of csrc/runtime/device_cache.h, from several threads and streams.
#include "csrc/runtime/allocator.h"

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "csrc/device/check.h"
#include "csrc/runtime/stream.h"
#include "test/cpp/check.h"

using namespace mybackend;
using runtime::allocator;

namespace {

constexpr size_t kMiB = 1 << 20;

// Keeps a stream busy until it is opened. Sent by a thread of its own, since on an idle host stream it runs inline.
class Gate {
 public:
  explicit Gate(c10::Stream stream)
      : sender_([this, stream] {
          MB_CHECK(device::api().launch_host_function(
              runtime::handle_of(stream), [](void* gate) { static_cast<Gate*>(gate)->wait(); }, this));
        }) {
    reached_.wait(false);
  }
  ~Gate() { open(); }
  void open() {
    open_ = true;
    open_.notify_all();
    if (sender_.joinable()) sender_.join();
  }

 private:
  void wait() {
    reached_ = true;
    reached_.notify_all();
    open_.wait(false);
  }
  std::atomic<bool> reached_{false}, open_{false};
  std::thread sender_;
};

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
  Gate gate(other);
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
