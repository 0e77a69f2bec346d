// What sorts of contiguous rows by radix share (sort.cu, topk.cu): keys, pairs, and the sorts of one row in a block.
//
// An element becomes an unsigned key whose order is the wanted one (key_of), so that one algorithm serves all dtypes
// and both directions. Keys travel with the 32-bit position of their element; values are fetched by it at the end.
//   short rows  rank sort: an element's place is the number of elements that go before it
//   long rows   least significant digit first; each thread counts and moves its own run of the row, so the order of
//               equal digits is kept. Digits are as wide as the table of counts (digits x threads) allows; a digit
//               that all keys share is passed over
#pragma once

#include <type_traits>

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/kernels/sort.h"

namespace mybackend::kernels::radix {

using device::Block;

constexpr int kThreads = 256;
constexpr int kCounts = 4096;
constexpr int kWidestDigit = 8;
constexpr int64_t kShortRow = 64;
constexpr int64_t kShortElements = 2048;

template <int kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};
template <class T>
using Key = typename UnsignedOf<sizeof(T)>::type;

template <class T>
constexpr Key<T> kInfinity = Key<T>(std::is_same_v<T, double>     ? 0x7ff0000000000000
                                    : std::is_same_v<T, float>    ? 0x7f800000
                                    : std::is_same_v<T, bfloat16> ? 0x7f80
                                                                  : 0x7c00);

// Ascending keys are ascending numbers, then NaN; -0 and 0 are equal. `flip` is all ones for the descending order.
template <class T>
MB_DEVICE Key<T> key_of(T x, Key<T> flip) {
  using K = Key<T>;
  constexpr K kTop = K(K(1) << (sizeof(K) * 8 - 1));
  K bits;
  memcpy(&bits, &x, sizeof(K));
  if constexpr (is_floating<T>) {
    // Whole-number arithmetic of one width: loops over 16-bit types vectorise.
    const K size = K(bits & K(~kTop));
    const K folded = (bits & kTop) != 0 ? K(~bits) : K(bits | kTop);
    const K number = size == 0 ? kTop : folded;
    bits = size > kInfinity<T> ? K(~K(0)) : number;
  } else if constexpr (std::is_signed_v<T>) {
    bits = K(bits ^ kTop);
  }
  return K(bits ^ flip);
}

MB_DEVICE int digit_width(const Block& block) {
  int width = kWidestDigit;
  while ((int64_t(1) << width) * block.threads > kCounts) width--;
  return width;
}

struct Sum {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};

// One row's keys and positions, and as much room again.
template <class K>
struct Pairs {
  K* key;
  uint32_t* position;
  K* other_key;
  uint32_t* other_position;

  MB_DEVICE void swap() {
    K* k = key;
    key = other_key;
    other_key = k;
    uint32_t* p = position;
    position = other_position;
    other_position = p;
  }
};

template <class K>
MB_DEVICE void rank_sort(Block block, Pairs<K>& pairs, int64_t n) {
  block.each(n, [&](int64_t i) {
    const K key = pairs.key[i];
    int32_t rank = 0;
    for (int32_t j = 0; j < int32_t(i); j++) rank += pairs.key[j] <= key;
    for (int32_t j = int32_t(i); j < int32_t(n); j++) rank += pairs.key[j] < key;
    pairs.other_key[rank] = key;
    pairs.other_position[rank] = pairs.position[i];
  });
  block.sync();
  pairs.swap();
}

// `counts` is shared memory for kCounts numbers.
template <class K>
MB_DEVICE void radix_sort(Block block, Pairs<K>& pairs, int64_t n, uint32_t* counts) {
  const int width = digit_width(block);
  const int digits = 1 << width;
  const int64_t run = device::ceil_div(n, block.threads);
  for (int shift = 0; shift < int(sizeof(K) * 8); shift += width) {
    auto digit_of = [&](K key) { return int((uint64_t(key) >> shift) & uint64_t(digits - 1)); };
    block.each(int64_t(digits) * block.threads, [&](int64_t c) { counts[c] = 0; });
    block.sync();
    block.each(block.threads, [&](int64_t t) {
      const int64_t end = (t + 1) * run < n ? (t + 1) * run : n;
      for (int64_t i = t * run; i < end; i++) counts[digit_of(pairs.key[i]) * block.threads + t]++;
    });
    block.sync();
    const int common = digit_of(pairs.key[0]);
    const int64_t alike = block.template sum<int64_t>(
        block.threads, [&](int64_t t) { return int64_t(counts[common * block.threads + t]); });
    if (alike == n) {
      block.sync();
      continue;
    }
    block.template scan<uint32_t>(
        int64_t(digits) * block.threads, 0u, Sum{}, [&](int64_t c) { return counts[c]; },
        [&](int64_t c, uint32_t through) { counts[c] = through - counts[c]; });
    block.sync();
    block.each(block.threads, [&](int64_t t) {
      const int64_t end = (t + 1) * run < n ? (t + 1) * run : n;
      for (int64_t i = t * run; i < end; i++) {
        const K key = pairs.key[i];
        const uint32_t place = counts[digit_of(key) * block.threads + t]++;
        pairs.other_key[place] = key;
        pairs.other_position[place] = pairs.position[i];
      }
    });
    block.sync();
    pairs.swap();
  }
}

template <class K>
MB_DEVICE Pairs<K> pairs_in(char* scratch, int64_t keep) {
  Pairs<K> pairs;
  pairs.key = reinterpret_cast<K*>(scratch);
  pairs.other_key = reinterpret_cast<K*>(scratch + keep * int64_t(sizeof(uint64_t)));
  pairs.position = reinterpret_cast<uint32_t*>(scratch + 2 * keep * int64_t(sizeof(uint64_t)));
  pairs.other_position = pairs.position + keep;
  return pairs;
}

template <class T>
MB_DEVICE void fetch_row(Block block, const Pairs<Key<T>>& pairs, int64_t n, const T* in, T* values, int64_t* indices) {
  block.each(n, [&](int64_t i) {
    const uint32_t position = pairs.position[i];
    values[i] = in[position];
    indices[i] = int64_t(position);
  });
  block.sync();
}

// Rows of at most kShortRow elements, many in a block.
template <class T>
struct SortShort {
  SortRows r;
  int64_t rows_per_block;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, Key<T>, keys, kShortElements);
    const Key<T> flip = r.descending ? Key<T>(~Key<T>(0)) : Key<T>(0);
    const int64_t first = block.index * rows_per_block;
    const int64_t rows = r.rows - first < rows_per_block ? r.rows - first : rows_per_block;
    const int32_t n = int32_t(r.columns);
    const T* in = reinterpret_cast<const T*>(r.in) + first * n;
    T* values = reinterpret_cast<T*>(r.values) + first * r.keep;
    int64_t* indices = r.indices + first * r.keep;
    block.each(rows * n, [&](int64_t i) { keys[i] = key_of(in[i], flip); });
    block.sync();
    block.each(rows * n, [&](int64_t i) {
      const int32_t line = int32_t(i) / n, begin = line * n, own = int32_t(i) - begin;
      const Key<T> key = keys[i];
      const Key<T>* row = keys + begin;
      int32_t rank = 0;
      for (int32_t j = 0; j < n; j++) rank += row[j] < key || (row[j] == key && j < own);
      if (rank >= r.keep) return;
      values[line * r.keep + rank] = in[i];
      indices[line * r.keep + rank] = own;
    });
  }
};

// Rows of at most kShortRow elements; of each the first `keep`.
template <class T>
void sort_short_rows(Stream stream, const SortRows& r) {
  const int64_t rows_per_block = kShortElements / r.columns;
  device::launch(stream, {device::ceil_div(r.rows, rows_per_block), kThreads, kShortElements},
                 SortShort<T>{r, rows_per_block});
}

using Sortable = Join<Floats, Halves, Integers, Booleans, Unsigneds>;

// Calls f(Type<T>) with T the type that sorts elements of `dtype`: bool by its byte.
template <class F>
void visit_sortable(DType dtype, const char* name, F f) {
  visit<Sortable>(dtype, name, [&](auto type) {
    using T = typename decltype(type)::type;
    f(Type<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>{});
  });
}

}  // namespace mybackend::kernels::radix
