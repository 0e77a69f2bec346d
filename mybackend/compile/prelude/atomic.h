// Additions to elements that other items may be adding to: of every type, 16-bit ones included.
//
// Where a launch is in one piece on the host, no other thread adds: MB_ALONE(items) at the start of a kernel finds out, and
// MB_ADD(at, value) then does without a locked instruction.
#pragma once

#include "numbers.h"

#if MB_GPU
#define MB_ALONE(items)
#define MB_ADD(at, value) mb_atomic_add(at, value)
#define MB_CAS(word, expected, desired) atomicCAS(word, expected, desired)
#define MB_READ(word) (*const_cast<const volatile decltype(*(word) + 0)*>(word))
#else
#define MB_ALONE(items) const bool mb_alone = mb_begin == 0 && mb_end >= mb_i64(items)
#define MB_ADD(at, value) (mb_alone ? mb_add_alone(at, value) : mb_atomic_add(at, value))
template <class Word>
MB_FN Word mb_compare_and_swap(Word* word, Word expected, Word desired) {
  __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
#define MB_CAS(word, expected, desired) mb_compare_and_swap(word, expected, desired)
#define MB_READ(word) __atomic_load_n(word, __ATOMIC_RELAXED)
#endif

template <class T>
MB_FN T mb_sum_of(T a, T b) {
  return mb_to<T>::from(mb_load(a) + mb_load(b));
}

template <class T>
MB_FN void mb_add_alone(T* at, T value) {
  *at = mb_sum_of(*at, value);
}

template <class T>
MB_FN void mb_atomic_add(T* at, T value) {
  if (sizeof(T) == 8) {
    mb_u64* word = reinterpret_cast<mb_u64*>(at);
    mb_u64 seen = MB_READ(word), assumed;
    do {
      assumed = seen;
      T now;
      __builtin_memcpy(&now, &assumed, sizeof(T));
      now = mb_sum_of(now, value);
      mb_u64 next = 0;
      __builtin_memcpy(&next, &now, sizeof(T));
      seen = MB_CAS(word, assumed, next);
    } while (seen != assumed);
  } else {
    const mb_u64 address = reinterpret_cast<mb_u64>(at);
    mb_u32* word = reinterpret_cast<mb_u32*>(address & ~mb_u64(3));
    const mb_u32 shift = mb_u32(address & 3) * 8;
    const mb_u32 mask = (sizeof(T) == 4 ? ~0u : (1u << (sizeof(T) * 8 % 32)) - 1u) << shift;
    mb_u32 seen = MB_READ(word), assumed;
    do {
      assumed = seen;
      const mb_u32 bits = (assumed & mask) >> shift;
      T now;
      __builtin_memcpy(&now, &bits, sizeof(T) < 4 ? sizeof(T) : 4);
      now = mb_sum_of(now, value);
      mb_u32 next = 0;
      __builtin_memcpy(&next, &now, sizeof(T) < 4 ? sizeof(T) : 4);
      seen = MB_CAS(word, assumed, (assumed & ~mask) | (next << shift & mask));
    } while (seen != assumed);
  }
}
#if MB_GPU
MB_FN void mb_atomic_add(float* at, float value) {
  atomicAdd(at, value);
}
MB_FN void mb_atomic_add(double* at, double value) {
  atomicAdd(at, value);
}
MB_FN void mb_atomic_add(int* at, int value) {
  atomicAdd(at, value);
}
MB_FN void mb_atomic_add(mb_i64* at, mb_i64 value) {
  atomicAdd(reinterpret_cast<mb_u64*>(at), mb_u64(value));
}
#endif
