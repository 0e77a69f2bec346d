// fold.h for a block of many threads: nvcc, and the N-thread build of the tests.
#pragma once

namespace mybackend::device {

// Elements a reader hands out at a time; an operation may read them twice, from the first-level cache.
constexpr int64_t kFoldChunk = 32768;
constexpr int64_t kStrip = 128;  // columns of one block

template <class X>
constexpr int kSpread = 1;

template <class T, int kVectors = 1, class Op, class F>
MB_DEVICE T fold(Block block, int64_t n, T identity, Op op, F f) {
  return block.reduce<T>(n, identity, op, f);
}

// Position of the first element of f(0..n) that is true, or n.
template <class F>
MB_DEVICE int64_t fold_first(Block block, int64_t n, F f) {
  return block.reduce<int64_t>(
      n, n, [](int64_t a, int64_t b) { return a < b ? a : b; }, [&](int64_t i) { return f(i) ? i : n; });
}

// `total` and the elements x[0..n) at positions p, ..., each with its position; see fold_host.h.
template <class Op, class X>
MB_DEVICE typename Op::Acc fold_positions(Block block, const Op& op, typename Op::Acc total, int64_t n, int64_t p,
                                          X x) {
  using Acc = typename Op::Acc;
  return op.combine(total, block.reduce<Acc>(
                               n, op.identity(), [&](Acc a, Acc b) { return op.combine(a, b); },
                               [&](int64_t i) { return op.term(x[i], p + i); }));
}

template <class T, class Stored>
MB_DEVICE T read_one(const char* at, DType = dtype_of<Stored>) {
  return convert<T>(*reinterpret_cast<const Stored*>(at));
}

template <class T, class Stored>
class RowReader {
 public:
  struct Elements {
    const Reduction& r;
    const char* base;
    int64_t position;
    MB_DEVICE T operator[](int64_t i) const {
      return read_one<T, Stored>(base + offset_of(position + i, r.reduced, r.reduced_size, r.reduced_stride));
    }
  };
  struct Run {
    const char* from;
    int64_t stride;
    MB_DEVICE T operator[](int64_t i) const { return read_one<T, Stored>(from + i * stride); }
  };

  MB_DEVICE int64_t longest(const Reduction&, int64_t remaining) const {
    return remaining < kFoldChunk ? remaining : kFoldChunk;
  }
  MB_DEVICE Elements read(const Reduction& r, const char* base, int64_t position, int64_t) {
    return {r, base, position};
  }
  MB_DEVICE Run read_run(const char* from, int64_t stride, int64_t, DType) { return {from, stride}; }
};

// `width` columns over positions [begin, end): row(position) is the address of the first column's element, elements of
// neighbouring columns lie `stride` bytes apart. done(i, accumulator) gets each column's result.
template <class Op, class Stored, class Row, class Done>
MB_DEVICE void fold_columns(Block block, const Op& op, DType, int64_t width, int64_t stride, int64_t begin, int64_t end,
                            Row row, Done done) {
  using T = typename Op::Input;
  using Acc = typename Op::Acc;
  constexpr int64_t kCascade = 256;  // rows folded into one accumulator before it is added to the column's total
  block.each(width, [&](int64_t i) {
    Cascade<Op> total(op);
    for (int64_t from = begin; from < end; from += kCascade) {
      const int64_t stop = end - from < kCascade ? end : from + kCascade;
      Acc acc = op.identity();
      int64_t p = from;
      for (; p + 4 <= stop; p += 4) {
        const T x0 = read_one<T, Stored>(row(p) + i * stride), x1 = read_one<T, Stored>(row(p + 1) + i * stride),
                x2 = read_one<T, Stored>(row(p + 2) + i * stride), x3 = read_one<T, Stored>(row(p + 3) + i * stride);
        acc = op.combine(acc, op.quad(x0, x1, x2, x3, p));
      }
      for (; p < stop; p++) acc = op.combine(acc, op.term(read_one<T, Stored>(row(p) + i * stride), p));
      total.add(acc);
    }
    done(i, total.total());
  });
}

// `width` results, each over its `parts` partial ones; partial(p, i) is part p of result i.
template <class Op, class Partial, class Done>
MB_DEVICE void fold_partials(Block block, const Op& op, int64_t width, int64_t parts, Partial partial, Done done) {
  block.each(width, [&](int64_t i) {
    Cascade<Op> total(op);
    for (int64_t p = 0; p < parts; p++) total.add(partial(p, i));
    done(i, total.total());
  });
}

// One result over n accumulators.
template <class Op, class F>
MB_DEVICE typename Op::Acc fold_accumulators(Block block, const Op& op, int64_t n, F f) {
  using Acc = typename Op::Acc;
  return block.reduce<Acc>(n, op.identity(), [&](Acc a, Acc b) { return op.combine(a, b); }, f);
}

template <class T, class F>
void visit_stored(DType dtype, F f) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::Half) return f(Type<half>{});
    if (dtype == DType::BFloat16) return f(Type<bfloat16>{});
  }
  if constexpr (std::is_same_v<T, complex<float>>) {
    if (dtype == DType::ComplexHalf) return f(Type<complex<half>>{});
  }
  f(Type<T>{});
}

template <class T, class F>
void visit_folded(DType dtype, F f) {
  visit_stored<T>(dtype, f);
}

}  // namespace mybackend::device
