// Scans: every element becomes the combination of those before it and itself.
//
// A scan is a struct S of values v0, v1, ... with
//   of(before, after)             their combination, which is associative
//   many                          an array of MB_LANES of each value; get(many, i), set(many, i, x)
//   first, leaves                 the type of v0, the number of values
//   op                            mb_add or mb_multiply where it is a plain sum or product, else mb_unknown
// A row is scanned in rounds of lanes (MB_ROUNDS): mb_scan<S>(lanes, count, carry, started) scans the `count` lanes of a
// round after what the rounds before it left in `carry`. On the GPU the lanes are the block's threads, and all of them
// must call it.
#pragma once

#include "reduce.h"

struct mb_unknown {
  enum { is_known = 0 };
};

#if MB_GPU
// Each warp by shuffles, then the first warp the totals of all. Threads past `count` come last, so that what they have
// reaches no other.
template <class S>
MB_FN S mb_scan_warp(S mine) {
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    const S before = mb_from_earlier(mine, lanes);
    if (int(threadIdx.x % 32) >= lanes) mine = S::of(before, mine);
  }
  return mine;
}

template <class S>
MB_FN void mb_scan(typename S::many& lanes, int count, S& carry, bool& started) {
  __shared__ __align__(16) unsigned char bytes[33 * sizeof(S)];
  S* held = reinterpret_cast<S*>(bytes);
  const int at = threadIdx.x, lane = at % 32, warp = at / 32, warps = blockDim.x / 32;
  S mine = mb_scan_warp(S::get(lanes, 0));
  if (lane == 31) held[warp] = mine;
  __syncthreads();
  if (warp == 0) {
    const S total = mb_scan_warp(held[lane < warps ? lane : 0]);
    if (lane < warps) held[lane] = total;
  }
  __syncthreads();
  if (warp > 0) mine = S::of(held[warp - 1], mine);
  if (started) mine = S::of(carry, mine);
  if (at == count - 1) held[32] = mine;
  __syncthreads();
  S::set(lanes, 0, mine);
  carry = held[32];
  started = true;
  __syncthreads();
}
#else
// Three ways to scan a round. The first two scan it by itself, and combine the carry in afterwards, so that the error of
// a long sum grows with rounds, not with elements.
//
// Sums and products go by vectors of 64 bytes (what the loops around store and load), whose own running results take
// three or four shifts. Other scans of one value take as many vector steps as the round has halvings; the steps write
// from one array into another, which have room before the lanes, so that the first of them are no special case. Scans of
// several values take lane after lane.
template <class T>
struct mb_vector {
  typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
  enum { width = 64 / sizeof(T) };
};

template <class Op, class V>
MB_FN V mb_scan_8(V neutral, V v) {
  v = Op::of(V(__builtin_shufflevector(neutral, v, 0, 8, 9, 10, 11, 12, 13, 14)), v);
  v = Op::of(V(__builtin_shufflevector(neutral, v, 0, 0, 8, 9, 10, 11, 12, 13)), v);
  return Op::of(V(__builtin_shufflevector(neutral, v, 0, 0, 0, 0, 8, 9, 10, 11)), v);
}
template <class Op, class V>
MB_FN V mb_scan_16(V neutral, V v) {
  v = Op::of(V(__builtin_shufflevector(neutral, v, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)), v);
  v = Op::of(V(__builtin_shufflevector(neutral, v, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)), v);
  v = Op::of(V(__builtin_shufflevector(neutral, v, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27)), v);
  return Op::of(V(__builtin_shufflevector(neutral, v, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 22, 23)), v);
}

template <class Op, class T>
MB_FN void mb_scan_vectors(T* lanes, T carry) {
  typedef typename mb_vector<T>::type V;
  constexpr int kWidth = mb_vector<T>::width;
  const V neutral = T(Op::neutral) - V{};
  for (int i = 0; i < MB_LANES; i += kWidth) {
    V& stored = *reinterpret_cast<V*>(lanes + i);
    V v = stored;
    if constexpr (kWidth == 8) v = mb_scan_8<Op>(neutral, v);
    if constexpr (kWidth == 16) v = mb_scan_16<Op>(neutral, v);
    stored = Op::of(V(carry - V{}), v);
    carry = Op::of(carry, T(v[kWidth - 1]));
  }
}

template <class S, class T>
MB_FN void mb_scan_step(const T* from, T* to, int step) {
  MB_SIMD()
  for (int lane = 0; lane < MB_LANES; lane++) {
    const T both = S::of(S{from[lane - step]}, S{from[lane]}).v0;
    to[lane] = lane < step ? from[lane] : both;
  }
}

template <class S, class T>
MB_FN void mb_scan_halves(T* lanes, T carry, bool started) {
  T a[2 * MB_LANES], b[2 * MB_LANES];
  for (int lane = 0; lane < MB_LANES; lane++) a[lane] = b[lane] = lanes[0];
  for (int lane = 0; lane < MB_LANES; lane++) a[MB_LANES + lane] = lanes[lane];
  for (int step = 1; step < MB_LANES; step *= 4) {
    mb_scan_step<S>(a + MB_LANES, b + MB_LANES, step);
    mb_scan_step<S>(b + MB_LANES, a + MB_LANES, 2 * step);
  }
  MB_SIMD()
  for (int lane = 0; lane < MB_LANES; lane++) {
    const T both = S::of(S{carry}, S{a[MB_LANES + lane]}).v0;
    lanes[lane] = started ? both : a[MB_LANES + lane];
  }
}

template <class S>
MB_FN void mb_scan(typename S::many& lanes, int count, S& carry, bool& started) {
  typedef typename S::first T;
  typedef typename S::op Op;
  for (int lane = count; lane < MB_LANES; lane++) S::set(lanes, lane, S::get(lanes, 0));
  if constexpr (Op::is_known && sizeof(T) >= 4) {
    mb_scan_vectors<Op>(lanes.v0, started ? carry.v0 : T(Op::neutral));
  } else if constexpr (S::leaves == 1) {
    mb_scan_halves<S>(lanes.v0, carry.v0, started);
  } else {
    S all = started ? S::of(carry, S::get(lanes, 0)) : S::get(lanes, 0);
    S::set(lanes, 0, all);
    for (int lane = 1; lane < count; lane++) {
      all = S::of(all, S::get(lanes, lane));
      S::set(lanes, lane, all);
    }
  }
  carry = S::get(lanes, count - 1);
  started = true;
}
#endif
