// Segment reductions. A block is one segment: the elements inside are the threads' where there are enough of them,
// else the segment is one collective for each. Called by csrc/aten/segment_reduce.cpp. Spec:
// test/ops/test_segment_reduce.py.
#include "csrc/kernels/segment_reduce.h"

#include <limits>

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kThreads = 128;
constexpr int64_t kWide = 32;  // elements inside from which each is a thread's

// NaN wins in extrema. The mean is a sum until the end.
template <class A>
struct Combine {
  SegmentOp op;
  MB_DEVICE A operator()(A a, A b) const {
    switch (op) {
      case SegmentOp::Max:
        return a != a ? a : (b != b || b > a) ? b : a;
      case SegmentOp::Min:
        return a != a ? a : (b != b || b < a) ? b : a;
      case SegmentOp::Prod:
        return a * b;
      default:
        return a + b;
    }
  }
  MB_DEVICE A identity() const {
    switch (op) {
      case SegmentOp::Max:
        return -std::numeric_limits<A>::infinity();
      case SegmentOp::Min:
        return std::numeric_limits<A>::infinity();
      case SegmentOp::Prod:
        return A(1);
      default:
        return A(0);
    }
  }
};

template <class S>
struct Segment {
  using A = Compute<S>;
  SegmentReduce a;

  struct Range {
    const S* data;  // of the first element
    int64_t begin, count;
  };
  MB_DEVICE Range range(int64_t block) const {
    const int64_t o = block / a.segments, s = block % a.segments;
    const int64_t* offsets = a.offsets + o * (a.segments + 1) + s;
    const int64_t begin = (o * a.length + offsets[0]) * a.inner;
    return {static_cast<const S*>(a.data) + begin, begin, offsets[1] - offsets[0]};
  }
};

template <class S>
struct Forward : Segment<S> {
  using A = Compute<S>;
  S* out;
  Forward(const SegmentReduce& args, S* to) : Segment<S>{args}, out(to) {}

  MB_DEVICE void operator()(Block block) const {
    const auto range = this->range(block.index);
    const S* x = range.data;
    const int64_t inner = this->a.inner, count = range.count;
    const Combine<A> combine{this->a.op};
    const bool mean = this->a.op == SegmentOp::Mean, has_initial = this->a.has_initial;
    const A initial = has_initial ? A(this->a.initial) : combine.identity();
    const auto finish = [=](A total) {
      if (!mean) return total;
      if (count == 0) return has_initial ? total : std::numeric_limits<A>::quiet_NaN();
      return total / A(count);
    };
    S* to = out + block.index * inner;
    if (inner >= kWide) {
      block.each(inner, [=](int64_t i) {
        A total = initial;
        for (int64_t k = 0; k < count; k++) total = combine(total, A(widen(x[k * inner + i])));
        to[i] = narrow<S>(finish(total));
      });
      return;
    }
    for (int64_t i = 0; i < inner; i++) {
      const A total =
          block.reduce<A>(count, combine.identity(), combine, [=](int64_t k) { return A(widen(x[k * inner + i])); });
      block.each(1, [=](int64_t) { to[i] = narrow<S>(finish(combine(initial, total))); });
    }
  }
};

template <class S>
struct Backward : Segment<S> {
  using A = Compute<S>;
  const S* out;
  const S* grad;
  S* grad_in;
  Backward(const SegmentReduce& args, const S* result, const S* from, S* to)
      : Segment<S>{args}, out(result), grad(from), grad_in(to) {}

  MB_DEVICE void operator()(Block block) const {
    const auto range = this->range(block.index);
    const S* x = range.data;
    const int64_t inner = this->a.inner, count = range.count;
    const A initial = this->a.has_initial ? A(this->a.initial) : A(1);
    const S *results = out + block.index * inner, *grads = grad + block.index * inner;
    S* to = grad_in + range.begin;
    const SegmentOp op = this->a.op;
    block.each2(count, inner, [=](int64_t k, int64_t i) {
      const A mine = A(widen(x[k * inner + i])), result = A(widen(results[i])), g = A(widen(grads[i]));
      A value = g;
      if (op == SegmentOp::Mean) {
        value = g / A(count);
      } else if (op == SegmentOp::Max || op == SegmentOp::Min) {  // equals share the gradient
        int64_t equals = 0;
        for (int64_t j = 0; j < count; j++) {
          const A other = A(widen(x[j * inner + i]));
          equals += other != other || other == result;
        }
        value = mine != mine || mine == result ? g / A(equals) : A(0);
      } else if (op == SegmentOp::Prod) {
        if (mine != mine || mine == A(0)) {
          A others = initial;
          for (int64_t j = 0; j < count; j++)
            if (j != k) others *= A(widen(x[j * inner + i]));
          value = g * others;
        } else {
          value = g * result / mine;
        }
      }
      to[k * inner + i] = narrow<S>(value);
    });
  }
};

}  // namespace

MB_DEFINE_KERNEL(segment_reduce, (Stream stream, const SegmentReduce& args, void* out)) {
  visit<Join<Floats, Halves>>(args.dtype, "segment_reduce", [&](auto type) {
    using S = typename decltype(type)::type;
    const int64_t work = device::ceil_div(args.length, args.segments) * args.inner;
    device::launch(stream, {args.outer * args.segments, kThreads, work}, Forward<S>(args, static_cast<S*>(out)));
  });
}

MB_DEFINE_KERNEL(segment_reduce_backward,
                 (Stream stream, const SegmentReduce& args, const void* out, const void* grad, void* grad_in)) {
  visit<Join<Floats, Halves>>(args.dtype, "segment_reduce_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    const int64_t work = device::ceil_div(args.length, args.segments) * args.inner;
    device::launch(
        stream, {args.outer * args.segments, kThreads, work},
        Backward<S>(args, static_cast<const S*>(out), static_cast<const S*>(grad), static_cast<S*>(grad_in)));
  });
}

}  // namespace mybackend::kernels
