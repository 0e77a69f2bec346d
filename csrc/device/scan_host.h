// scan.h for one thread.
#pragma once

namespace mybackend::device {

// Elements on their way to memory: written in place where they lie one after the other, through a buffer elsewhere.
template <class T, int64_t N>
class RowWriter {
 public:
  MB_DEVICE T* begin(char* to, int64_t stride, DType dtype) {
    to_ = to;
    stride_ = stride;
    dtype_ = dtype;
    direct_ = dtype == dtype_of<T> && stride == int64_t(sizeof(T));
    return direct_ ? reinterpret_cast<T*>(to) : buffer_;
  }
  MB_DEVICE void end(int64_t n) {
    if (!direct_) store_row(to_, buffer_, stride_, n, dtype_);
  }

 private:
  char* to_ = nullptr;
  int64_t stride_ = 0;
  DType dtype_{};
  bool direct_ = false;
  alignas(64) T buffer_[N];
};

// Vectors of eight numbers, wherever they lie.
template <class T>
struct EightOf {
  typedef T type __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
};
template <class T>
using Eight = typename EightOf<T>::type;

// Running results y[0..n) of x[0..n), from `carry` on, and the last of them. Eight at a time: their own running results
// by three shifts, then what came before is combined in; a line would otherwise take one whole addition after the
// other.
template <class Fn, class A, class T>
MB_DEVICE A scan_eights(int64_t n, A carry, A neutral, const T* x, T* y) {
  const Fn fn;
  const Eight<A> before = neutral - Eight<A>{};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Eight<A> v = __builtin_convertvector(*reinterpret_cast<const Eight<T>*>(x + i), Eight<A>);
    v = fn(Eight<A>(__builtin_shufflevector(before, v, 0, 8, 9, 10, 11, 12, 13, 14)), v);
    v = fn(Eight<A>(__builtin_shufflevector(before, v, 0, 0, 8, 9, 10, 11, 12, 13)), v);
    v = fn(Eight<A>(__builtin_shufflevector(before, v, 0, 0, 0, 0, 8, 9, 10, 11)), v);
    const Eight<A> running = fn(Eight<A>(carry - Eight<A>{}), v);
    *reinterpret_cast<Eight<T>*>(y + i) = __builtin_convertvector(running, Eight<T>);
    carry = fn(carry, A(v[7]));
  }
  const int rest = int(n - i);
  for (int j = 0; j < rest; j++) {
    carry = fn(carry, A(x[i + j]));
    y[i + j] = T(carry);
  }
  return carry;
}

// Calls store(i, accumulator) for the running results of n terms f(0..n), from `carry` on, and returns the last.
template <class Op, class F, class S>
MB_DEVICE typename Op::Acc scan_terms(const Op& op, int64_t n, typename Op::Acc carry, F f, S store) {
  for (int64_t i = 0; i < n; i++) {
    carry = op.combine(carry, f(i));
    store(i, carry);
  }
  return carry;
}

// Elements [begin, end) of one line whose first element is `in`. Without `write` only the total is found.
template <class Op, class Stored>
MB_DEVICE typename Op::Acc scan_row(Block, const Op& op, const Scan& s, const char* in, char* out0, char* out1,
                                    int64_t begin, int64_t end, typename Op::Acc carry, bool write) {
  using T = typename Op::Input;
  using Acc = typename Op::Acc;
  RowReader<T, Stored> reader;
  RowWriter<T, kFoldChunk> values;
  RowWriter<int64_t, Op::positions ? kFoldChunk : 1> positions;
  for (int64_t p = begin; p < end;) {
    const int64_t n = std::min(end - p, kFoldChunk);
    const T* x = reader.read_run(in + p * s.in_stride, s.in_stride, n, s.in_dtype);
    auto term = [=, &op](int64_t i) { return op.term(x[i], p + i); };
    if constexpr (Op::chains) {
      if (!write) {
        carry = op.combine(carry, op.total(n, term));
        p += n;
        continue;
      }
    }
    T* y = values.begin(out0 + p * s.out_stride[0], s.out_stride[0], s.out_dtype[0]);
    if constexpr (Op::positions) {
      int64_t* at = positions.begin(out1 + p * s.out_stride[1], s.out_stride[1], s.out_dtype[1]);
      carry = scan_terms(op, n, carry, term, [=, &op](int64_t i, Acc acc) {
        y[i] = op.value(acc);
        at[i] = acc.b;
      });
      positions.end(n);
    } else if constexpr (Op::chains && std::is_arithmetic_v<T> && sizeof(decltype(carry.a)) == 8) {
      carry = {scan_eights<typename Op::Fn>(n, carry.a, op.identity().a, x, y)};
    } else {
      carry = scan_terms(op, n, carry, term, [=, &op](int64_t i, Acc acc) { y[i] = op.value(acc); });
    }
    values.end(n);
    p += n;
  }
  return carry;
}

// Elements [begin, end) of `width` neighbouring lines; carry[i] is where line i starts from and receives its total.
template <class Op, class Stored>
MB_DEVICE void scan_columns(Block, const Op& op, const Scan& s, const char* in, char* out0, char* out1, int64_t width,
                            int64_t begin, int64_t end, typename Op::Acc* carry, bool write) {
  using T = typename Op::Input;
  const int64_t stride = s.kept_stride[0];
  RowReader<T, Stored> reader;
  RowWriter<T, kStrip> values;
  RowWriter<int64_t, Op::positions ? kStrip : 1> positions;
  Strip<typename Op::Acc, kStrip> acc;
  for (int64_t i = 0; i < width; i++) acc.set(i, carry[i]);
  for (int64_t p = begin; p < end; p++) {
    const T* x = reader.read_run(in + p * s.in_stride, stride, width, s.in_dtype);
    if (!write) {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++) acc.set(i, op.combine(acc.get(i), op.term(x[i], p)));
      continue;
    }
    T* y = values.begin(out0 + p * s.out_stride[0], s.kept_out_stride[0][0], s.out_dtype[0]);
    if constexpr (Op::positions) {
      int64_t* at = positions.begin(out1 + p * s.out_stride[1], s.kept_out_stride[1][0], s.out_dtype[1]);
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++) {
        const auto next = op.combine(acc.get(i), op.term(x[i], p));
        acc.set(i, next);
        y[i] = op.value(next);
        at[i] = next.b;
      }
      positions.end(width);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < width; i++) {
        const auto next = op.combine(acc.get(i), op.term(x[i], p));
        acc.set(i, next);
        y[i] = op.value(next);
      }
    }
    values.end(width);
  }
  for (int64_t i = 0; i < width; i++) carry[i] = acc.get(i);
}

}  // namespace mybackend::device
