// Events of the host driver: what they stand for, waiting across streams, time.
#include "test/cpp/device/support.h"

using namespace test;

namespace {

TEST_CASE("an event that was never recorded is complete and holds up nobody") {
  OwnEvent event;
  OwnStream stream;
  CHECK_OK(driver().event_query(event));
  CHECK_OK(driver().event_synchronize(event));
  CHECK_OK(driver().stream_wait_event(stream, event));
  CHECK_OK(driver().stream_query(stream));
}

TEST_CASE("an event is complete once the work recorded before it is done") {
  OwnStream stream;
  OwnEvent event;
  Gate gate;
  gate.hold(stream);
  CHECK_OK(driver().event_record(event, stream));
  CHECK_EQ(driver().event_query(event), Status::NotReady);
  gate.open();
  CHECK_OK(driver().event_synchronize(event));
  CHECK_OK(driver().event_query(event));
}

TEST_CASE("a stream that waits for an event defers its work without blocking the caller") {
  OwnStream producer, consumer;
  OwnEvent ready;
  OwnMemory<int64_t> from(1), to(1);
  write<int64_t>(from, 0);
  write<int64_t>(to, -1);
  Gate gate;
  gate.hold(producer);
  launch(producer, {1, 32, 1}, Assign{from, 9});
  CHECK_OK(driver().event_record(ready, producer));
  CHECK_OK(driver().stream_wait_event(consumer, ready));
  launch(consumer, {1, 32, 1}, Forward{from, to});
  CHECK_EQ(driver().stream_query(consumer), Status::NotReady);
  gate.open();
  CHECK_EQ(read<int64_t>(to, consumer), 9);
}

TEST_CASE("waiting uses the record at the time of the call, not a later one") {
  OwnStream first, second, waiter;
  OwnEvent event;
  CHECK_OK(driver().event_record(event, first));
  CHECK_OK(driver().event_synchronize(event));
  CHECK_OK(driver().stream_wait_event(waiter, event));
  Gate gate;
  gate.hold(second);
  CHECK_OK(driver().event_record(event, second));
  CHECK_OK(driver().stream_synchronize(waiter));
  CHECK_EQ(driver().event_query(event), Status::NotReady);
  gate.open();
}

TEST_CASE("a wait for an earlier record is not satisfied by a later one that completes first") {
  OwnStream slow, fast, waiter;
  OwnEvent event;
  Gate gate;
  gate.hold(slow);
  CHECK_OK(driver().event_record(event, slow));
  CHECK_OK(driver().stream_wait_event(waiter, event));
  CHECK_OK(driver().event_record(event, fast));
  CHECK_OK(driver().event_synchronize(event));
  CHECK_EQ(driver().stream_query(waiter), Status::NotReady);
  gate.open();
  CHECK_OK(driver().stream_synchronize(waiter));
}

TEST_CASE("an event may be destroyed while a stream waits for it") {
  OwnStream producer, consumer;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0);
  Gate gate;
  gate.hold(producer);
  {
    OwnEvent event;
    CHECK_OK(driver().event_record(event, producer));
    CHECK_OK(driver().stream_wait_event(consumer, event));
  }
  launch(consumer, {1, 32, 1}, Assign{data, 3});
  CHECK_EQ(driver().stream_query(consumer), Status::NotReady);
  gate.open();
  CHECK_EQ(read<int64_t>(data, consumer), 3);
}

TEST_CASE("elapsed time is the time between two events in milliseconds") {
  OwnStream stream;
  OwnEvent start, end;
  CHECK_OK(driver().event_record(start, stream));
  CHECK_OK(driver().launch_host_function(
      stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }, nullptr));
  CHECK_OK(driver().event_record(end, stream));
  CHECK_OK(driver().event_synchronize(end));
  float milliseconds = 0;
  CHECK_OK(driver().event_elapsed_time(&milliseconds, start, end));
  CHECK(milliseconds >= 19.f);
  CHECK(milliseconds < 5000.f);
}

TEST_CASE("elapsed time is refused without timing, without a record and before completion") {
  OwnStream stream;
  OwnEvent timed, untimed(kEventDisableTiming), never;
  float milliseconds = 0;
  CHECK_OK(driver().event_record(untimed, stream));
  Gate gate;
  gate.hold(stream);
  CHECK_OK(driver().event_record(timed, stream));
  CHECK_EQ(driver().event_elapsed_time(&milliseconds, timed, timed), Status::NotReady);
  CHECK_EQ(driver().event_elapsed_time(&milliseconds, untimed, timed), Status::InvalidResourceHandle);
  CHECK_EQ(driver().event_elapsed_time(&milliseconds, never, timed), Status::InvalidResourceHandle);
  gate.open();
}

}  // namespace
