// Reductions: how two partial results combine, and how the partial results of lanes and threads become one.
//
// mb_all<Op>(x) is the combination over the block's threads, the same value in each of them; mb_all<Op>(lanes) first
// combines an array of MB_LANES. On the host a block is one thread.
#pragma once

#include "numbers.h"
#include "loops.h"

struct mb_add {
  enum { neutral = 0, is_known = 1 };
  template <class T>
  MB_FN T of(T a, T b) {
    return a + b;
  }
};
struct mb_multiply {
  enum { neutral = 1, is_known = 1 };
  template <class T>
  MB_FN T of(T a, T b) {
    return a * b;
  }
};
struct mb_exclusive_or {
  template <class T>
  MB_FN T of(T a, T b) {
    return a ^ b;
  }
};
struct mb_or {
  template <class T>
  MB_FN T of(T a, T b) {
    return a | b;
  }
};
struct mb_and {
  template <class T>
  MB_FN T of(T a, T b) {
    return a & b;
  }
};
struct mb_larger {
  template <class T>
  MB_FN T of(T a, T b) {
    return b > a ? b : a;
  }
};
struct mb_smaller {
  template <class T>
  MB_FN T of(T a, T b) {
    return b < a ? b : a;
  }
};

// An extreme value with its index. NaN beats every number; among equals the lowest index wins.
template <class T>
struct mb_found {
  T value;
  mb_i64 index;
};
template <bool kLargest>
struct mb_extreme {
  template <class T>
  MB_FN bool beats(T a, T b) {
    return kLargest ? a > b : a < b;
  }
  // Whether (a, i) is the answer rather than (b, j).
  template <class T, class I>
  MB_FN bool comes_first(T a, I i, T b, I j) {
    const bool a_nan = a != a, b_nan = b != b;
    const bool equal = (a == b) | (a_nan & b_nan);
    return (equal & (i < j)) | (!equal & !b_nan & (a_nan | beats(a, b)));
  }
  template <class T>
  MB_FN mb_found<T> of(mb_found<T> a, mb_found<T> b) {
    return comes_first(b.value, b.index, a.value, a.index) ? b : a;
  }
  // Whether the next value of a lane, which comes with a larger index, replaces what the lane holds.
  template <class T>
  MB_FN bool replaces(T value, T held) {
    return beats(value, held) || ((value != value) & (held == held));
  }
};
typedef mb_extreme<true> mb_largest;
typedef mb_extreme<false> mb_smallest;

// Mean, sum of squared differences from it, and count (or weight); combined as in Chan, Golub and LeVeque (1979).
template <class T>
struct mb_moments {
  T mean, m2, weight;
};
struct mb_combine_moments {
  template <class T>
  MB_FN mb_moments<T> of(mb_moments<T> a, mb_moments<T> b) {
    const T weight = a.weight + b.weight;
    const T delta = b.mean - a.mean;
    const T share = weight == T(0) ? T(0) : b.weight / weight;
    mb_moments<T> all;
    all.mean = a.mean + delta * share;
    all.m2 = a.m2 + b.m2 + delta * delta * a.weight * share;
    all.weight = weight;
    return all;
  }
};

#if MB_GPU
// Values of any type between the threads of a warp, word by word. A block is whole warps.
template <class T>
struct mb_words {
  unsigned word[(sizeof(T) + 3) / 4];
};
#define MB_SHUFFLE(name, shuffle)                                                   \
  template <class T>                                                                \
  MB_FN T name(const T& x, int lanes) {                                             \
    mb_words<T> words{};                                                            \
    __builtin_memcpy(&words, &x, sizeof(T));                                        \
    for (unsigned& word : words.word) word = shuffle(0xffffffffu, word, lanes);     \
    T y;                                                                            \
    __builtin_memcpy(&y, &words, sizeof(T));                                        \
    return y;                                                                       \
  }
MB_SHUFFLE(mb_from_later, __shfl_down_sync)
MB_SHUFFLE(mb_from_earlier, __shfl_up_sync)
MB_SHUFFLE(mb_from_lane, __shfl_sync)
#undef MB_SHUFFLE

// Each warp by shuffles, then the first warp the results of all.
template <class Op, class T>
MB_FN T mb_all(T x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = Op::of(x, mb_from_later(x, lanes));
  if (blockDim.x == 32) return mb_from_lane(x, 0);
  __shared__ __align__(16) unsigned char bytes[32 * sizeof(T)];
  T* held = reinterpret_cast<T*>(bytes);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  if (lane == 0) held[warp] = x;
  __syncthreads();
  if (warp == 0) {
    x = held[lane < warps ? lane : 0];
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      const T later = mb_from_later(x, lanes);
      if (lane + lanes < warps) x = Op::of(x, later);
    }
    if (lane == 0) held[0] = x;
  }
  __syncthreads();
  x = held[0];
  __syncthreads();
  return x;
}
#else
template <class Op, class T>
MB_FN T mb_all(T x) {
  return x;
}
#endif

template <class Op, class T, int kLanes>
MB_FN T mb_all(T (&lanes)[kLanes]) {
  T all = lanes[0];
  for (int lane = 1; lane < kLanes; lane++) all = Op::of(all, lanes[lane]);
  return mb_all<Op>(all);
}

// Lanes kept as separate arrays, which is what vectorises.
// Half of them are combined with the other half until one is left.
template <class Op, class T, class I, int kLanes>
MB_FN mb_found<T> mb_all_found(T (&values)[kLanes], I (&indices)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    MB_SIMD()
    for (int lane = 0; lane < half; lane++) {
      const bool take = Op::comes_first(values[lane + half], indices[lane + half], values[lane], indices[lane]);
      values[lane] = take ? values[lane + half] : values[lane];
      indices[lane] = take ? indices[lane + half] : indices[lane];
    }
  }
  return mb_all<Op>(mb_found<T>{values[0], mb_i64(indices[0])});
}
template <class T, int kLanes>
MB_FN mb_moments<T> mb_all_moments(T (&mean)[kLanes], T (&m2)[kLanes], T (&weight)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2) {
    MB_SIMD()
    for (int lane = 0; lane < half; lane++) {
      const mb_moments<T> all =
          mb_combine_moments::of(mb_moments<T>{mean[lane], m2[lane], weight[lane]},
                                 mb_moments<T>{mean[lane + half], m2[lane + half], weight[lane + half]});
      mean[lane] = all.mean;
      m2[lane] = all.m2;
      weight[lane] = all.weight;
    }
  }
  return mb_all<mb_combine_moments>(mb_moments<T>{mean[0], m2[0], weight[0]});
}

// Extremes of floating-point numbers are kept apart from a count of NaNs, so that both are plain reductions.
template <class T>
MB_FN T mb_or_nan(T extreme, T nans) {
  return nans > T(0) ? T(MB_NAN) : extreme;
}
