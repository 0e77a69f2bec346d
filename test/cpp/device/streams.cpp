// Streams of the host driver: order, where work runs, waiting, destruction.
#include <optional>

#include "csrc/device/host_config.h"
#include "csrc/device/host_parallel.h"
#include "test/cpp/device/support.h"

using namespace test;

namespace {

int64_t expected_steps(int64_t count) {
  int64_t value = 0;
  for (int64_t i = 0; i < count; i++) value = int64_t(uint64_t(value) * 3 + uint64_t(i));
  return value;
}

TEST_CASE("a stream runs its work in order") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0, stream);
  for (int64_t i = 0; i < 30; i++) send_step(stream, data, i);
  CHECK_EQ(read<int64_t>(data, stream), expected_steps(30));
}

TEST_CASE("a busy stream queues its work and keeps the order when it goes on") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0, stream);
  Gate gate;
  gate.hold(stream);
  for (int64_t i = 0; i < 30; i++) send_step(stream, data, i);
  CHECK_EQ(driver().stream_query(stream), Status::NotReady);
  gate.open();
  CHECK_EQ(read<int64_t>(data, stream), expected_steps(30));
  CHECK_OK(driver().stream_query(stream));
}

TEST_CASE("an idle stream runs a launch in the launching thread") {
  if (host::config().async) return;
  OwnStream stream;
  std::thread::id where;
  CHECK_OK(driver().launch_host_function(
      stream, [](void* to) { *static_cast<std::thread::id*>(to) = std::this_thread::get_id(); }, &where));
  CHECK(where == std::this_thread::get_id());
  CHECK_OK(driver().stream_query(stream));
}

TEST_CASE("launches from several threads on one stream exclude each other and each thread keeps its order") {
  OwnStream stream;
  struct Tally {
    std::atomic<int> inside{0};
    std::atomic<int> overlaps{0};
    int64_t plain = 0;
    int64_t last[4] = {};
    int64_t disorder = 0;
  } tally;
  struct Tick {
    Tally* tally;
    int thread;
    int64_t number;
    MB_DEVICE void operator()(Block) const {
      if (tally->inside++ != 0) tally->overlaps++;
      tally->plain++;
      if (tally->last[thread] + 1 != number) tally->disorder++;
      tally->last[thread] = number;
      tally->inside--;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (int64_t i = 1; i <= 500; i++) launch(stream, {1, 32, 1}, Tick{&tally, t, i});
      CHECK_OK(driver().stream_synchronize(stream));
    });
  for (auto& thread : threads) thread.join();
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK_EQ(tally.plain, 2000);
  CHECK_EQ(tally.overlaps.load(), 0);
  CHECK_EQ(tally.disorder, 0);
}

TEST_CASE("a device waits for all of its streams and for no other device's") {
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0);
  OwnStream here;
  CHECK_OK(driver().set_device(1));
  Gate elsewhere;
  {
    OwnStream there;
    elsewhere.hold(there);
    CHECK_OK(driver().set_device(0));
    send_step(here, data, 7);
    CHECK_OK(driver().device_synchronize());
    CHECK_OK(driver().stream_query(here));
    CHECK_EQ(driver().stream_query(there), Status::NotReady);
    elsewhere.open();
  }
  CHECK_EQ(read<int64_t>(data), 7);
}

TEST_CASE("the default stream belongs to the current device") {
  Gate gate;
  gate.hold(nullptr);
  CHECK_EQ(driver().stream_query(nullptr), Status::NotReady);
  CHECK_OK(driver().set_device(1));
  CHECK_OK(driver().stream_query(nullptr));
  CHECK_OK(driver().set_device(0));
  gate.open();
}

TEST_CASE("a destroyed stream finishes its pending work and the device still waits for it") {
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0);
  Gate gate;
  {
    OwnStream stream;
    gate.hold(stream);
    send_step(stream, data, 5);
  }
  CHECK_EQ(*data.data, 0);
  gate.open();
  CHECK_OK(driver().device_synchronize());
  CHECK_EQ(read<int64_t>(data), 5);
}

TEST_CASE("waiting for the device ends although a destroyed stream's worker ends meanwhile") {
  for (int i = 0; i < 500; i++) {
    Gate gate;
    {
      OwnStream stream;
      gate.hold(stream);
    }
    gate.open();
    CHECK_OK(driver().device_synchronize());
  }
}

TEST_CASE("several threads wait for one stream") {
  OwnStream stream;
  Gate gate;
  gate.hold(stream);
  std::atomic<int> returned{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      CHECK_OK(driver().stream_synchronize(stream));
      returned++;
    });
  CHECK_EQ(returned.load(), 0);
  gate.open();
  for (auto& thread : threads) thread.join();
  CHECK_EQ(returned.load(), 3);
}

TEST_CASE("a host function that waits for a stream is refused instead of waiting for itself") {
  OwnStream stream;
  struct Seen {
    Stream stream;
    Status stream_status, device_status;
  } seen{stream, Status::Success, Status::Success};
  CHECK_OK(driver().launch_host_function(
      stream,
      [](void* to) {
        auto& s = *static_cast<Seen*>(to);
        s.stream_status = driver().stream_synchronize(s.stream);
        s.device_status = driver().device_synchronize();
      },
      &seen));
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK_EQ(seen.stream_status, Status::NotPermitted);
  CHECK_EQ(seen.device_status, Status::NotPermitted);
}

TEST_CASE("a queued launch keeps its own copy of the kernel") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0, stream);
  Gate gate;
  gate.hold(stream);
  {
    Assign kernel{data, 42};
    launch(stream, {1, 32, 1}, kernel);
    kernel.value = 1;
  }
  gate.open();
  CHECK_EQ(read<int64_t>(data, stream), 42);
}

std::atomic<int> hook_calls{0};

void in_two_threads(int64_t begin, int64_t end, int64_t, ParallelBody fn, void* ctx) {
  hook_calls++;
  const int64_t middle = begin + (end - begin) / 2;
  std::thread other([=] { fn(ctx, middle, end); });
  fn(ctx, begin, middle);
  other.join();
}

TEST_CASE("a launch larger than its grain is spread by the hook and a smaller one does not touch it") {
  set_parallel_for(&in_two_threads);
  OwnStream stream;
  OwnMemory<int64_t> data(2 * 65536);
  CHECK_OK(driver().memset_async(data, 0, 8, stream));
  CHECK_OK(driver().stream_synchronize(stream));
  hook_calls = 0;
  launch(stream, {1, 32, 1}, Step{data, 1, 1});
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK_EQ(hook_calls.load(), 0);

  CHECK_OK(driver().memset_async(data, 0, 2 * 65536 * 8, stream));
  hook_calls = 0;
  launch(stream, {2, 32, 65536}, Step{data, 65536, 1});
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK(hook_calls.load() >= 1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < 2 * 65536; i++) wrong += data[i] != 1;
  CHECK_EQ(wrong, 0);
  set_parallel_for(nullptr);
}

// Writes its number to each item of a piece that begins at a multiple of 16, and -1 to those of any other.
void note_pieces(const void* kernel, int64_t begin, int64_t end) {
  int64_t* const items = *static_cast<int64_t* const*>(kernel);
  for (int64_t i = begin; i < end; i++) items[i] = begin % 16 == 0 ? begin : -1;
}

TEST_CASE("a launch in units is cut between units only, also when it waits for its stream") {
  set_parallel_for(&in_two_threads);
  OwnStream stream;
  for (const bool waits : {false, true}) {
    std::vector<int64_t> items(40, -2), few(16, -2);
    int64_t *const of_items = items.data(), *const of_few = few.data();
    std::optional<Gate> gate;
    if (waits) gate.emplace().hold(stream);
    hook_calls = 0;
    host::launch_in_units(stream, &of_items, sizeof(of_items), &note_pieces, 40, 1, 16);
    host::launch_in_units(stream, &of_few, sizeof(of_few), &note_pieces, 16, 1, 16);
    gate.reset();
    CHECK_OK(driver().stream_synchronize(stream));
    CHECK_EQ(hook_calls.load(), 1);  // one unit is one piece
    std::vector<int64_t> expected(40, 16);
    std::fill_n(expected.begin(), 16, 0);
    CHECK(items == expected);
    CHECK(few == std::vector<int64_t>(16, 0));
  }
  set_parallel_for(nullptr);
}

TEST_CASE("an unknown device is refused and stays the last error until it is read") {
  CHECK_EQ(driver().set_device(99), Status::InvalidDevice);
  CHECK_EQ(driver().get_last_error(), Status::InvalidDevice);
  CHECK_OK(driver().get_last_error());
}

}  // namespace
