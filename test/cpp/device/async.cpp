// MYBACKEND_HOST_STREAMS=async: launches never run inline and are delayed, so that a forgotten event wait shows.
#include <cstdlib>

#include "csrc/device/host_config.h"
#include "test/cpp/device/support.h"

using namespace test;

namespace {

// Before anything reads the environment.
const bool asked = setenv("MYBACKEND_HOST_STREAMS", "async", 1) == 0;

// How often, of `tries`, a consumer stream reads what was there before its producer wrote.
int stale_reads(int tries, bool wait) {
  OwnStream producer, consumer;
  OwnEvent ready;
  struct alignas(64) Cell {
    std::atomic<int64_t> value{0};
  };
  struct Put {
    Cell* cell;
    MB_DEVICE void operator()(Block) const { cell->value.store(1, std::memory_order_relaxed); }
  };
  struct Look {
    const Cell* cell;
    int* stale;
    MB_DEVICE void operator()(Block) const { *stale += cell->value.load(std::memory_order_relaxed) == 0; }
  };
  int stale = 0;
  std::vector<Cell> cells(static_cast<size_t>(tries));
  for (Cell& cell : cells) {
    launch(producer, {1, 32, 1}, Put{&cell});
    CHECK_OK(driver().event_record(ready, producer));
    if (wait) CHECK_OK(driver().stream_wait_event(consumer, ready));
    launch(consumer, {1, 32, 1}, Look{&cell, &stale});
    CHECK_OK(driver().stream_synchronize(consumer));
    CHECK_OK(driver().stream_synchronize(producer));
  }
  return stale;
}

TEST_CASE("asynchronous mode shows a missing event wait") {
  CHECK(asked && host::config().async);
  CHECK(stale_reads(200, false) > 0);
}

TEST_CASE("asynchronous mode keeps streams with event waits in order") {
  CHECK_EQ(stale_reads(200, true), 0);
}

TEST_CASE("asynchronous mode never runs in the launching thread") {
  OwnStream stream;
  std::thread::id where;
  CHECK_OK(driver().launch_host_function(
      stream, [](void* to) { *static_cast<std::thread::id*>(to) = std::this_thread::get_id(); }, &where));
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK(where != std::thread::id() && where != std::this_thread::get_id());
}

}  // namespace
