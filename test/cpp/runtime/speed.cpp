// What allocating and freeing a block costs the thread that does it (its CPU time, so that other load does not count).
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <algorithm>

#include "csrc/runtime/allocator.h"

using namespace mybackend::runtime;

namespace {

double cpu_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class F>
void measure(const char* name, F f) {
  constexpr int kTimes = 500'000;
  double best = 1e9;
  for (int round = 0; round < 7; round++) {
    const double start = cpu_nanoseconds();
    for (int i = 0; i < kTimes; i++) f();
    best = std::min(best, (cpu_nanoseconds() - start) / kTimes);
  }
  std::printf("%-36s %6.1f ns\n", name, best);
}

}  // namespace

int main() {
  for (const size_t bytes : {256, 4096, 65536, 3 << 20}) {
    char name[64];
    std::snprintf(name, sizeof(name), "allocate and free %zu bytes", bytes);
    measure(name, [bytes] {
      const auto pointer = allocator().allocate(bytes);
      asm volatile("" ::"r"(pointer.get()));
    });
  }
  measure("malloc and free 256 bytes", [] {
    void* pointer = std::malloc(256);
    asm volatile("" ::"r"(pointer));
    std::free(pointer);
  });
}
