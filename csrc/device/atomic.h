// Updates of one element of global memory that other blocks may be updating too.
//
// Integers and floating-point numbers of 4 and 8 bytes use the hardware where it has the operation; everything else,
// 16-bit types included, is a compare-and-swap of the aligned word that holds the element. Complex sums add their two
// halves. Only commutative operations belong here, and the order of floating-point sums is not defined.
#pragma once

#include <cstring>

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"

namespace mybackend::device {

// compare_and_swap: stores `desired` where *word == expected; returns what was there.
template <class Word>
MB_DEVICE Word compare_and_swap(Word* word, Word expected, Word desired) {
#if defined(__CUDACC__)
  return atomicCAS(word, expected, desired);
#else
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
#endif
}

template <class Word>
MB_DEVICE Word load_relaxed(const Word* word) {
#if defined(__CUDACC__)
  return *const_cast<const volatile Word*>(word);
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

// *at = op(*at, value), atomically.
template <class T, class Op>
MB_DEVICE void atomic_update(T* at, T value, Op op) {
  static_assert(sizeof(T) <= 8, "one machine word");
  if constexpr (sizeof(T) == 8) {
    using Word = unsigned long long;
    Word* word = reinterpret_cast<Word*>(at);
    Word seen = load_relaxed(word), assumed;
    do {
      assumed = seen;
      T now;
      memcpy(&now, &assumed, sizeof(T));
      now = op(now, value);
      Word next;
      memcpy(&next, &now, sizeof(T));
      seen = compare_and_swap(word, assumed, next);
    } while (seen != assumed);
  } else {
    const uintptr_t address = reinterpret_cast<uintptr_t>(at);
    unsigned* word = reinterpret_cast<unsigned*>(address & ~uintptr_t(3));
    const unsigned shift = unsigned(address & 3) * 8;
    const unsigned mask = (sizeof(T) == 4 ? ~0u : (1u << (sizeof(T) * 8 % 32)) - 1u) << shift;
    unsigned seen = load_relaxed(word), assumed;
    do {
      assumed = seen;
      const unsigned bits = (assumed & mask) >> shift;
      T now;
      memcpy(&now, &bits, sizeof(T));
      now = op(now, value);
      unsigned next = 0;
      memcpy(&next, &now, sizeof(T));
      seen = compare_and_swap(word, assumed, (assumed & ~mask) | (next << shift));
    } while (seen != assumed);
  }
}

struct AtomicPlus {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return convert<T>(Compute<T>(a) + Compute<T>(b));
  }
};

template <class T>
MB_DEVICE void atomic_add(T* at, T value) {
  if constexpr (is_complex<T>) {
    Real<T>* parts = reinterpret_cast<Real<T>*>(at);
    atomic_add(parts, value.real());
    atomic_add(parts + 1, value.imag());
  } else {
#if defined(__CUDACC__)
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, int32_t>) {
      atomicAdd(at, value);
      return;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      atomicAdd(reinterpret_cast<unsigned long long*>(at), (unsigned long long)(value));
      return;
    }
#endif
    atomic_update(at, value, AtomicPlus{});
  }
}

}  // namespace mybackend::device
