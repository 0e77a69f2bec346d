// fold.h for one thread: loops that vectorise.
#pragma once

#include <algorithm>
#include <limits>

#include "csrc/device/widen.h"

namespace mybackend::device {

// Elements a reader hands out at a time: they stay in the first-level cache, and a float sum over them has short
// chains.
constexpr int64_t kFoldChunk = 2048;
constexpr int64_t kStrip = 512;  // columns folded side by side

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

// Elements stored as Stored: x[i] is one of them as T.
template <class T, class Stored>
struct Widened {
  const Stored* data;
  MB_DEVICE T operator[](int64_t i) const { return widen(data[i]); }
};
template <class T, class Stored>
using Elements = std::conditional_t<std::is_same_v<T, Stored>, const T*, Widened<T, Stored>>;

// Vectors of accumulators that suit elements X: a vector of elements of half the size fills two.
template <class X>
constexpr int kSpread = 1;
template <class T, class Stored>
constexpr int kSpread<Widened<T, Stored>> = 2;

// op over f(0..n); `op` is associative and commutative. A vector of accumulators takes four vectors of terms at a time,
// so that the latency of one operation does not bound the loop.
template <class T, int kVectors = 1, class Op, class F>
MB_DEVICE T fold(Block, int64_t n, T identity, Op op, F f) {
  constexpr int kLanes = kVectors * kVectorBytes / int(sizeof(T));
  T total = identity;
  int64_t i = 0;
  if (n >= kLanes) {
    T lane[kLanes];
    for (int j = 0; j < kLanes; j++) lane[j] = identity;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma omp simd
      for (int j = 0; j < kLanes; j++)
        lane[j] = op(lane[j], op(op(f(i + j), f(i + kLanes + j)), op(f(i + 2 * kLanes + j), f(i + 3 * kLanes + j))));
    }
    for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
      for (int j = 0; j < kLanes; j++) lane[j] = op(lane[j], f(i + j));
    }
#pragma GCC unroll 8
    for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma omp simd
      for (int j = 0; j < half; j++) lane[j] = op(lane[j], lane[j + half]);
    }
    total = lane[0];
  }
  for (; i < n; i++) total = op(total, f(i));
  return total;
}

// Position of the first element of f(0..n) that is true, or n.
template <class F>
MB_DEVICE int64_t fold_first(Block block, int64_t n, F f) {
  constexpr int64_t kPiece = 256;
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t end = std::min(n, begin + kPiece);
    if (!fold<uint8_t>(block, end - begin, 0, Or{}, [&](int64_t i) { return uint8_t(f(begin + i)); })) continue;
    for (int64_t i = begin; i < end; i++)
      if (f(i)) return i;
  }
  return n;
}

// `total` and the elements x[0..n) at positions p, ..., each with its position. The best value is found first; its
// position is looked for only when it beats the one known.
template <class Op, class X>
MB_DEVICE typename Op::Acc fold_positions(Block block, const Op& op, typename Op::Acc total, int64_t n, int64_t p,
                                          X x) {
  using T = typename Op::Input;
  const T best = fold<T, kSpread<X>>(block, n, op.identity().a, typename Op::Order{}, [=](int64_t i) { return x[i]; });
  if (op.beats({best, p}, total) == 0) return total;
  const int64_t at = best != best ? fold_first(block, n, [=](int64_t i) { return x[i] != x[i]; })
                                  : fold_first(block, n, [=](int64_t i) { return x[i] == best; });
  return {best, p + at};
}

template <class T, class /*Stored*/>
MB_DEVICE T read_one(const char* at, DType dtype) {
  T value;
  load_row(&value, at, 0, 1, dtype);
  return value;
}

// Reads pieces of at most kFoldChunk elements; converts, gathers and joins short runs on the way. Stored is T or, for
// float, bfloat16, which is then widened as it is used.
template <class T, class Stored>
class RowReader {
 public:
  using Run = Elements<T, Stored>;
  MB_DEVICE int64_t longest(const Reduction&, int64_t remaining) const { return std::min(remaining, kFoldChunk); }

  Run read(const Reduction& r, const char* base, int64_t position, int64_t n) {
    if (r.reduced <= 1)
      return read_run(base + (r.reduced == 0 ? 0 : position * r.reduced_stride[0]), stride(r), n, r.in_dtype);
    int64_t index = position % r.reduced_size[0];
    if (index + n <= r.reduced_size[0])
      return read_run(base + offset_of(position, r.reduced, r.reduced_size, r.reduced_stride), stride(r), n,
                      r.in_dtype);
    Stored* to = buffer_;
    while (n > 0) {
      const int64_t run = std::min(n, r.reduced_size[0] - index);
      load_row(to, base + offset_of(position, r.reduced, r.reduced_size, r.reduced_stride), stride(r), run, r.in_dtype);
      to += run;
      position += run;
      n -= run;
      index = 0;
    }
    return Run{buffer_};
  }

  // n elements that lie `stride` bytes apart.
  MB_DEVICE Run read_run(const char* from, int64_t stride, int64_t n, DType dtype) {
    if (dtype == dtype_of<Stored> && stride == int64_t(sizeof(Stored)))
      return Run{reinterpret_cast<const Stored*>(from)};
    load_row(buffer_, from, stride, n, dtype);
    return Run{buffer_};
  }

 private:
  static int64_t stride(const Reduction& r) { return r.reduced == 0 ? 0 : r.reduced_stride[0]; }
  alignas(64) Stored buffer_[kFoldChunk];
};

template <class Acc, int64_t N>
struct Strip;
template <class A, int64_t N>
struct Strip<One<A>, N> {
  alignas(64) A a[N];
  MB_DEVICE One<A> get(int64_t i) const { return {a[i]}; }
  MB_DEVICE void set(int64_t i, One<A> x) { a[i] = x.a; }
};
template <class A, class B, int64_t N>
struct Strip<Two<A, B>, N> {
  alignas(64) A a[N];
  alignas(64) B b[N];
  MB_DEVICE Two<A, B> get(int64_t i) const { return {a[i], b[i]}; }
  MB_DEVICE void set(int64_t i, Two<A, B> x) {
    a[i] = x.a;
    b[i] = x.b;
  }
};
template <class A, class B, class C, int64_t N>
struct Strip<Three<A, B, C>, N> {
  alignas(64) A a[N];
  alignas(64) B b[N];
  alignas(64) C c[N];
  MB_DEVICE Three<A, B, C> get(int64_t i) const { return {a[i], b[i], c[i]}; }
  MB_DEVICE void set(int64_t i, Three<A, B, C> x) {
    a[i] = x.a;
    b[i] = x.b;
    c[i] = x.c;
  }
};

constexpr int64_t kCascade = 64;  // rows folded into one accumulator before it is added to the column's total

// Columns' accumulators at three levels: `low` is folded into, `carry` moves it up a level now and then, so that the
// rounding error of a sum does not grow with the number of rows. After `finish` low holds the results.
template <class Op>
class StripCascade {
 public:
  using Strips = Strip<typename Op::Acc, kStrip>;
  MB_DEVICE StripCascade(const Op& op, int64_t width) : op_(op), width_(width) { clear(low_); }
  MB_DEVICE Strips& low() { return low_; }
  MB_DEVICE void carry() {
    if (carries_ == 0) {
      clear(middle_);
      clear(high_);
    }
    move_up(low_, middle_);
    if (++carries_ % kChain == 0) move_up(middle_, high_);
  }
  MB_DEVICE void finish() {
    if (carries_ == 0) return;
    move_up(middle_, low_);
    move_up(high_, low_);
  }

 private:
  static constexpr int64_t kChain = 32;
  MB_DEVICE void clear(Strips& strip) {
    for (int64_t i = 0; i < width_; i++) strip.set(i, op_.identity());
  }
  MB_DEVICE void move_up(Strips& from, Strips& to) {
#pragma GCC ivdep
    for (int64_t i = 0; i < width_; i++) to.set(i, op_.combine(to.get(i), from.get(i)));
    clear(from);
  }

  const Op& op_;
  int64_t width_, carries_ = 0;
  Strips low_, middle_, high_;
};

// `width` columns over positions [begin, end): row(position) is the address of the first column's element, elements of
// neighbouring columns lie `stride` bytes apart. done(i, accumulator) gets each column's result.
template <class Op, class Stored, class Row, class Done>
MB_DEVICE void fold_columns(Block, const Op& op, DType dtype, int64_t width, int64_t stride, int64_t begin, int64_t end,
                            Row row, Done done) {
  using T = typename Op::Input;
  using Acc = typename Op::Acc;
  using Run = Elements<T, Stored>;
  struct Buffer {
    alignas(64) Stored x[kStrip];
  } buffer[4];
  StripCascade<Op> total(op, width);
  const bool ready = dtype == dtype_of<Stored> && stride == int64_t(sizeof(Stored));
  auto read = [&](int k, int64_t position) {
    const char* at = row(position);
    if (ready) return Run{reinterpret_cast<const Stored*>(at)};
    load_row(buffer[k].x, at, stride, width, dtype);
    return Run{buffer[k].x};
  };
  while (begin < end) {
    const int64_t stop = std::min(end, begin + kCascade);
    Strip<Acc, kStrip>& strip = total.low();
    int64_t p = begin;
    for (; p + 4 <= stop; p += 4) {
      const Run x0 = read(0, p), x1 = read(1, p + 1), x2 = read(2, p + 2), x3 = read(3, p + 3);
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++)
        strip.set(i, op.combine(strip.get(i), op.quad(x0[i], x1[i], x2[i], x3[i], p)));
    }
    for (; p < stop; p++) {
      const Run x = read(0, p);
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++) strip.set(i, op.combine(strip.get(i), op.term(x[i], p)));
    }
    begin = stop;
    if (begin < end) total.carry();
  }
  total.finish();
  for (int64_t i = 0; i < width; i++) done(i, total.low().get(i));
}

// `width` results, each over its `parts` partial ones; partial(p, i) is part p of result i.
template <class Op, class Partial, class Done>
MB_DEVICE void fold_partials(Block, const Op& op, int64_t width, int64_t parts, Partial partial, Done done) {
  constexpr int64_t kChain = 8;
  StripCascade<Op> total(op, width);
  for (int64_t begin = 0; begin < parts; begin += kChain) {
    auto& strip = total.low();
    for (int64_t p = begin; p < std::min(parts, begin + kChain); p++) {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++) strip.set(i, op.combine(strip.get(i), partial(p, i)));
    }
    if (begin + kChain < parts) total.carry();
  }
  total.finish();
  for (int64_t i = 0; i < width; i++) done(i, total.low().get(i));
}

// One result over n accumulators.
template <class Op, class F>
MB_DEVICE typename Op::Acc fold_accumulators(Block, const Op& op, int64_t n, F f) {
  Cascade<Op> total(op);
  for (int64_t i = 0; i < n; i++) total.add(f(i));
  return total.total();
}

// The reader converts by itself, so that one kernel serves every dtype that is computed in T.
template <class T, class F>
void visit_stored(DType, F f) {
  f(Type<T>{});
}

// The same for reductions, which are over so soon that bfloat16 is worth a kernel of its own.
template <class T, class F>
void visit_folded(DType dtype, F f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::BFloat16) return f(Type<bfloat16>{});
  }
  f(Type<T>{});
}

}  // namespace mybackend::device
