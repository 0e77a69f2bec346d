// portable.h for tests: every block runs with real threads and a real barrier, so that ThreadSanitizer finds a missing
// `sync` and a race on shared memory without a GPU. Collectives place their barriers where portable_cuda.h does.
//
// Launches run at once in the calling thread's time and ignore the stream. MB_TEST_THREADS is the number of threads a
// block has unless `test_threads` says otherwise.
//
// What the threads share is arranged without locks: a lock would order them and so hide the races looked for.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "csrc/device/api.h"

#define MB_DEVICE inline
#define MB_DEVICE_NOINLINE __attribute__((noinline))
// One piece of memory per place in the source (and template instance), as on a GPU: a loop gets the same one each time.
#define MB_SHARED(block, type, name, count) \
  static const char name##_place = 0;       \
  type* name = static_cast<type*>((block).shared(&name##_place, sizeof(type) * (count)))

namespace mybackend::device {

constexpr bool kThreadedBlocks = true;

inline int test_threads = MB_TEST_THREADS;

// POSIX's barrier rather than std::barrier: threads that wait sleep at once. There are many more of them than cores,
// and spinning takes the time of those that are waited for.
class Barrier {
 public:
  explicit Barrier(int threads) { pthread_barrier_init(&barrier_, nullptr, unsigned(threads)); }
  ~Barrier() { pthread_barrier_destroy(&barrier_); }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  void wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// The shared memory of a block. Found by the address of its place in the source; relaxed atomics only.
class SharedArena {
 public:
  SharedArena() : bytes_(kBytes / sizeof(Line)) {}

  void* get(const void* place, size_t bytes) {
    for (size_t i = 0;; i++) {
      if (i == kPlaces) refuse();
      const void* found = nullptr;
      Slot& slot = slots_[i];
      if (slot.place.compare_exchange_strong(found, place, std::memory_order_relaxed)) {
        const size_t offset = used_.fetch_add((bytes + sizeof(Line) - 1) / sizeof(Line), std::memory_order_relaxed);
        if ((offset * sizeof(Line)) + bytes > kBytes) refuse();
        slot.memory.store(&bytes_[offset], std::memory_order_relaxed);
        return &bytes_[offset];
      }
      if (found != place) continue;
      void* memory;
      while ((memory = slot.memory.load(std::memory_order_relaxed)) == nullptr) std::this_thread::yield();
      return memory;
    }
  }

 private:
  static constexpr size_t kBytes = 1 << 20, kPlaces = 128;
  struct alignas(64) Line {
    char bytes[64];
  };
  struct Slot {
    std::atomic<const void*> place{nullptr};
    std::atomic<void*> memory{nullptr};
  };

  [[noreturn]] static void refuse() {
    std::fputs("a kernel uses more shared memory than the test build provides\n", stderr);
    std::abort();
  }

  std::vector<Line> bytes_;
  std::atomic<size_t> used_{0};
  Slot slots_[kPlaces];
};

// As small as on a GPU, so that tests cut lists as it does.
constexpr int64_t kMaxKernelBytes = int64_t(1) << 12;

struct Block {
  int64_t index;
  int threads;
  int thread;
  Barrier* barrier;
  SharedArena* arena;

  void sync() const { barrier->wait(); }
  void* shared(const void* place, size_t bytes) const { return arena->get(place, bytes); }

  template <class F>
  void each(int64_t n, F f) const {
    for (int64_t i = thread; i < n; i += threads) f(i);
  }

  template <class F>
  void each2(int64_t rows, int64_t columns, F f) const {
    each(rows * columns, [&](int64_t e) { f(e / columns, e % columns); });
  }

  template <class T, class F>
  T sum(int64_t n, F f) const {
    return reduce<T>(n, T(0), [](T a, T b) { return T(a + b); }, f);
  }

  template <class T, class F>
  T max(int64_t n, F f) const {
    const T lowest = std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                          : std::numeric_limits<T>::lowest();
    return reduce<T>(n, lowest, [](T a, T b) { return (a != a || a > b) ? a : b; }, f);
  }

  template <class T, class F>
  T min(int64_t n, F f) const {
    const T highest =
        std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    return reduce<T>(n, highest, [](T a, T b) { return (a != a || a < b) ? a : b; }, f);
  }

  template <class T, class Op, class F>
  T reduce(int64_t n, T identity, Op op, F f) const {
    T total = identity;
    for (int64_t i = thread; i < n; i += threads) total = op(total, f(i));
    static const char place = 0;
    T* of_thread = static_cast<T*>(shared(&place, kMostThreads * sizeof(T)));
    sync();  // an earlier collective may still be reading
    of_thread[thread] = total;
    sync();
    total = of_thread[0];
    for (int t = 1; t < threads; t++) total = op(total, of_thread[t]);
    return total;
  }

  template <class T, class Op, class F, class S>
  T scan(int64_t n, T carry, Op op, F f, S store) const {
    static const char place = 0;
    T* lane = static_cast<T*>(shared(&place, kMostThreads * sizeof(T)));
    for (int64_t begin = 0; begin < n; begin += threads) {
      const int64_t i = begin + thread;
      const int count = n - begin < threads ? int(n - begin) : threads;
      if (i < n) lane[thread] = f(i);
      sync();
      T value = carry;
      for (int t = 0; t < count && t <= thread; t++) value = op(value, lane[t]);
      T last = carry;
      for (int t = 0; t < count; t++) last = op(last, lane[t]);
      if (i < n) store(i, value);
      carry = last;
      sync();
    }
    return carry;
  }

 private:
  static constexpr size_t kMostThreads = 1024;
};

template <class K>
void launch_blocks(Stream /*stream*/, int64_t blocks, int /*threads*/, int64_t /*work*/, const K& kernel) {
  const int count = test_threads;
  Barrier barrier(count);
  auto arena = std::make_unique<SharedArena>();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; thread++)
    threads.emplace_back([&, thread, copy = kernel] {
      for (int64_t b = 0; b < blocks; b++) {
        if (b != 0) barrier.wait();  // shared memory is used again
        copy(Block{b, count, thread, &barrier, arena.get()});
      }
    });
  for (std::thread& thread : threads) thread.join();
}

MB_DEVICE void report(ErrorRecord* record, int code, int64_t a = 0, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
  int none = 0;
  if (__atomic_compare_exchange_n(&record->code, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    record->values[0] = a;
    record->values[1] = b;
    record->values[2] = c;
    record->values[3] = d;
  }
}

}  // namespace mybackend::device
