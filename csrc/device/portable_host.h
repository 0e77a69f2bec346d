// The C++ compiler's half of portable.h: a block is one thread, so a collective is a loop that vectorises.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "csrc/device/host_runtime.h"

#define MB_DEVICE inline __attribute__((always_inline))
#define MB_DEVICE_NOINLINE __attribute__((noinline))
#define MB_SHARED(block, type, name, count) alignas(64) type name[count]

namespace mybackend::device {

// Whether a block has threads of its own: what a launch needs to know to choose between fewer and more blocks.
constexpr bool kThreadedBlocks = false;
// A kernel is copied only when it cannot run at once, so its size hardly matters.
constexpr int64_t kMaxKernelBytes = int64_t(1) << 15;

struct Block {
  int64_t index;
  static constexpr int threads = 1;
  static constexpr int thread = 0;

  MB_DEVICE void sync() const {}

  template <class F>
  MB_DEVICE void each(int64_t n, F f) const {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) f(i);
  }

  // f(i, j) for 0 <= i < rows, 0 <= j < columns; neighbouring j are neighbours in time (host) or in threads (GPU).
  template <class F>
  MB_DEVICE void each2(int64_t rows, int64_t columns, F f) const {
    for (int64_t i = 0; i < rows; i++) {
#pragma GCC ivdep
      for (int64_t j = 0; j < columns; j++) f(i, j);
    }
  }

  // Floating-point sums go in runs of kRun whose totals are added in turn: the error grows with n / kRun, not n.
  template <class T, class F>
  MB_DEVICE T sum(int64_t n, F f) const {
    T total = T(0);
    for (int64_t begin = 0; begin < n; begin += kRun) {
      const int64_t end = std::min(n, begin + kRun);
      T run = T(0);
      if constexpr (std::is_arithmetic_v<T>) {
#pragma omp simd reduction(+ : run)
        for (int64_t i = begin; i < end; i++) run += f(i);
      } else {
        for (int64_t i = begin; i < end; i++) run += f(i);
      }
      total += run;
    }
    return total;
  }

  // NaN wins, as in ATen.
  template <class T, class F>
  MB_DEVICE T max(int64_t n, F f) const {
    T peak = std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                  : std::numeric_limits<T>::lowest();
    T nans = T(0);  // counted in T, not in bool: lanes of one width vectorise
#pragma omp simd reduction(max : peak) reduction(+ : nans)
    for (int64_t i = 0; i < n; i++) {
      const T value = f(i);
      if constexpr (std::numeric_limits<T>::has_quiet_NaN) nans += value != value ? T(1) : T(0);
      peak = value > peak ? value : peak;
    }
    if constexpr (std::numeric_limits<T>::has_quiet_NaN)
      return nans > T(0) ? std::numeric_limits<T>::quiet_NaN() : peak;
    return peak;
  }

  template <class T, class F>
  MB_DEVICE T min(int64_t n, F f) const {
    T low = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    T nans = T(0);  // counted in T, not in bool: lanes of one width vectorise
#pragma omp simd reduction(min : low) reduction(+ : nans)
    for (int64_t i = 0; i < n; i++) {
      const T value = f(i);
      if constexpr (std::numeric_limits<T>::has_quiet_NaN) nans += value != value ? T(1) : T(0);
      low = value < low ? value : low;
    }
    if constexpr (std::numeric_limits<T>::has_quiet_NaN) return nans > T(0) ? std::numeric_limits<T>::quiet_NaN() : low;
    return low;
  }

  // `op` is associative; terms are combined from left to right.
  template <class T, class Op, class F>
  MB_DEVICE T reduce(int64_t n, T identity, Op op, F f) const {
    T total = identity;
    for (int64_t i = 0; i < n; i++) total = op(total, f(i));
    return total;
  }

  // Inclusive scan from left to right: store(i, op over f(0..i)), starting from `carry`; returns the last value.
  template <class T, class Op, class F, class S>
  MB_DEVICE T scan(int64_t n, T carry, Op op, F f, S store) const {
    for (int64_t i = 0; i < n; i++) {
      carry = op(carry, f(i));
      store(i, carry);
    }
    return carry;
  }

 private:
  static constexpr int64_t kRun = 4096;
};

template <class K>
void run_blocks(const void* kernel, int64_t begin, int64_t end) {
  const K& k = *static_cast<const K*>(kernel);
  for (int64_t b = begin; b < end; b++) k(Block{b});
}

// A task of fewer elements than this costs more to hand to another core than to run.
constexpr int64_t kHostGrain = 32768;

template <class K>
void launch_blocks(Stream stream, int64_t blocks, int /*threads*/, int64_t work, const K& kernel) {
  const int64_t grain = std::max<int64_t>(1, kHostGrain / std::max<int64_t>(1, work));
  host_runtime().launch(stream, &kernel, sizeof(K), &run_blocks<K>, blocks, grain);
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
