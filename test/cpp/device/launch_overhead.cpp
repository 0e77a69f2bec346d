// What an inline launch costs over calling the kernel's body: prints nanoseconds per launch, the best of several runs.
#include <chrono>
#include <cstdio>

#include "test/cpp/device/support.h"

using namespace test;

void test::fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  std::abort();
}

namespace {

struct Touch {
  int64_t* data;
  int64_t more[6];  // as large as a typical pointwise kernel's arguments
  MB_DEVICE void operator()(Block) const { asm volatile("" ::"r"(data) : "memory"); }
};

template <class F>
double nanoseconds(F f) {
  constexpr int kCalls = 1'000'000, kRuns = 7;
  double best = 1e9;
  for (int run = 0; run < kRuns; run++) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; i++) f();
    best = std::min(
        best, std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls);
  }
  return best;
}

}  // namespace

int main() {
  OwnStream stream;
  OwnEvent event(kEventDisableTiming), timed;
  OwnMemory<int64_t> data(1);
  const Touch kernel{data, {}};
  void (*volatile body)(const void*, int64_t, int64_t) = &run_blocks<Touch>;
  const double called = nanoseconds([&] { body(&kernel, 0, 1); });
  std::printf("calling the body        %6.1f ns\n", called);
  std::printf("launch, own stream     +%6.1f ns\n", nanoseconds([&] { launch(stream, {1, 32, 1}, kernel); }) - called);
  std::printf("launch, default stream +%6.1f ns\n", nanoseconds([&] { launch(nullptr, {1, 32, 1}, kernel); }) - called);
  std::printf("event record, untimed   %6.1f ns\n", nanoseconds([&] { driver().event_record(event, stream); }));
  std::printf("event record, timed     %6.1f ns\n", nanoseconds([&] { driver().event_record(timed, stream); }));
  std::printf("wait for a done event   %6.1f ns\n", nanoseconds([&] { driver().stream_wait_event(stream, event); }));
  std::printf("stream_synchronize      %6.1f ns\n", nanoseconds([&] { driver().stream_synchronize(stream); }));
}
