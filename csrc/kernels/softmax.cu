// softmax and log_softmax along one dimension, and their gradients.
//
// Rows that are dense along `dim` (inner == 1) take a block each: the largest element, the sum of exponentials, the
// result, three passes over a row that stays in cache. Otherwise a block takes a strip of up to kLanes neighbours
// across `inner` and walks along `dim`, so that every access is dense; what it has to remember of a neighbour is in
// shared memory, written and read by the same thread only. Sums are in float for half and bfloat16. Called by
// csrc/aten/softmax.cpp. Spec: test/ops/test_softmax.py.
#include "csrc/kernels/softmax.h"

#include <algorithm>

#include "csrc/device/exponential.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kLanes = 128;
constexpr int64_t kHeld = 2048;  // powers of a row that a block keeps while it adds them up

// O is the type of the result, S that of the input.
template <bool Log, class O, class S>
struct SoftmaxRows {
  O* out;
  const S* in;
  int64_t dim;

  MB_DEVICE void operator()(Block block) const {
    using A = Compute<S>;
    const S* x = in + block.index * dim;
    O* y = out + block.index * dim;
    const A peak = block.max<A>(dim, [&](int64_t i) { return widen(x[i]); });
    if constexpr (Log) {
      const A total = block.sum<A>(dim, [&](int64_t i) { return math::exp_down(widen(x[i]) - peak); });
      const A log_total = math::log(total);
      block.each(dim, [&](int64_t i) { y[i] = narrow<O>(widen(x[i]) - peak - log_total); });
    } else if constexpr (std::is_same_v<O, A>) {
      const A total = block.sum<A>(dim, [&](int64_t i) { return y[i] = math::exp_down(widen(x[i]) - peak); });
      block.each(dim, [&](int64_t i) { y[i] /= total; });
    } else if (dim <= kHeld) {
      MB_SHARED(block, A, held, kHeld);
      A* const power = held;
      const A total = block.sum<A>(dim, [=](int64_t i) { return power[i] = math::exp_down(widen(x[i]) - peak); });
      block.each(dim, [=](int64_t i) { y[i] = narrow<O>(power[i] / total); });
    } else {
      const A total = block.sum<A>(dim, [&](int64_t i) { return math::exp_down(widen(x[i]) - peak); });
      block.each(dim, [&](int64_t i) { y[i] = narrow<O>(math::exp_down(widen(x[i]) - peak) / total); });
    }
  }
};

// Where the strip of a block begins and how many neighbours it holds.
struct Strip {
  int64_t begin;
  int64_t width;

  MB_DEVICE Strip(int64_t index, const SoftmaxShape& shape) {
    const int64_t strips = device::ceil_div(shape.inner, kLanes);
    const int64_t first = index % strips * kLanes;
    begin = index / strips * shape.dim * shape.inner + first;
    width = shape.inner - first < kLanes ? shape.inner - first : kLanes;
  }
};

template <bool Log, class O, class S>
struct SoftmaxStrips {
  O* out;
  const S* in;
  SoftmaxShape shape;

  MB_DEVICE void operator()(Block block) const {
    using A = Compute<S>;
    MB_SHARED(block, A, peak, kLanes);
    MB_SHARED(block, A, total, kLanes);
    const Strip strip(block.index, shape);
    const S* x = in + strip.begin;
    O* y = out + strip.begin;
    block.each(strip.width, [&](int64_t i) {
      peak[i] = widen(x[i]);
      total[i] = A(0);
    });
    for (int64_t d = 1; d < shape.dim; d++) {
      const S* row = x + d * shape.inner;
      block.each(strip.width, [&](int64_t i) {
        const A value = widen(row[i]), before = peak[i];
        peak[i] = value != value || value > before ? value : before;
      });
    }
    for (int64_t d = 0; d < shape.dim; d++) {
      const S* row = x + d * shape.inner;
      block.each(strip.width, [&](int64_t i) { total[i] += math::exp_down(widen(row[i]) - peak[i]); });
    }
    if constexpr (Log) block.each(strip.width, [&](int64_t i) { total[i] = math::log(total[i]); });
    for (int64_t d = 0; d < shape.dim; d++) {
      const S* row = x + d * shape.inner;
      O* result = y + d * shape.inner;
      block.each(strip.width, [&](int64_t i) {
        const A shifted = widen(row[i]) - peak[i];
        result[i] = narrow<O>(Log ? shifted - total[i] : math::exp_down(shifted) / total[i]);
      });
    }
  }
};

// S is the type of the gradient and the result, G that of the input and its gradient.
template <bool Log, class G, class S>
struct BackwardRows {
  G* grad_in;
  const S* grad;
  const S* out;
  int64_t dim;

  MB_DEVICE void operator()(Block block) const {
    using A = Compute<S>;
    const S* g = grad + block.index * dim;
    const S* y = out + block.index * dim;
    G* result = grad_in + block.index * dim;
    if constexpr (Log) {
      const A total = block.sum<A>(dim, [&](int64_t i) { return widen(g[i]); });
      block.each(dim, [&](int64_t i) { result[i] = narrow<G>(widen(g[i]) - math::exp_down(widen(y[i])) * total); });
    } else {
      const A total = block.sum<A>(dim, [&](int64_t i) { return widen(g[i]) * widen(y[i]); });
      block.each(dim, [&](int64_t i) { result[i] = narrow<G>((widen(g[i]) - total) * widen(y[i])); });
    }
  }
};

template <bool Log, class G, class S>
struct BackwardStrips {
  G* grad_in;
  const S* grad;
  const S* out;
  SoftmaxShape shape;

  MB_DEVICE void operator()(Block block) const {
    using A = Compute<S>;
    MB_SHARED(block, A, total, kLanes);
    const Strip strip(block.index, shape);
    block.each(strip.width, [&](int64_t i) { total[i] = A(0); });
    for (int64_t d = 0; d < shape.dim; d++) {
      const S* g = grad + strip.begin + d * shape.inner;
      const S* y = out + strip.begin + d * shape.inner;
      block.each(strip.width, [&](int64_t i) { total[i] += Log ? widen(g[i]) : widen(g[i]) * widen(y[i]); });
    }
    for (int64_t d = 0; d < shape.dim; d++) {
      const S* g = grad + strip.begin + d * shape.inner;
      const S* y = out + strip.begin + d * shape.inner;
      G* result = grad_in + strip.begin + d * shape.inner;
      block.each(strip.width, [&](int64_t i) {
        const A value = widen(y[i]);
        result[i] = narrow<G>(Log ? widen(g[i]) - math::exp_down(value) * total[i] : (widen(g[i]) - total[i]) * value);
      });
    }
  }
};

device::Grid row_grid(const SoftmaxShape& shape) {
  const int threads = int(std::min<int64_t>(1024, std::max<int64_t>(32, device::ceil_div(shape.dim, 8))));
  return {shape.outer, threads, shape.dim};
}

device::Grid strip_grid(const SoftmaxShape& shape) {
  return {shape.outer * device::ceil_div(shape.inner, kLanes), kLanes,
          shape.dim * std::min<int64_t>(shape.inner, kLanes)};
}

// Calls f(Type<of the result>, Type<of the input>) for the pairs that exist: equal types, and float from half.
template <class F>
void visit_pair(DType result, DType input, const char* op, F f) {
  if (result == DType::Float && input == DType::Half) return f(Type<float>{}, Type<half>{});
  visit<Join<Floats, Halves>>(input, op, [&](auto type) { f(type, type); });
}

template <bool Log>
void forward(Stream stream, void* out, const void* in, const SoftmaxShape& shape, DType out_dtype, DType in_dtype) {
  visit_pair(out_dtype, in_dtype, Log ? "log_softmax" : "softmax", [&](auto result, auto input) {
    using O = typename decltype(result)::type;
    using S = typename decltype(input)::type;
    O* y = static_cast<O*>(out);
    const S* x = static_cast<const S*>(in);
    if (shape.inner == 1) return device::launch(stream, row_grid(shape), SoftmaxRows<Log, O, S>{y, x, shape.dim});
    device::launch(stream, strip_grid(shape), SoftmaxStrips<Log, O, S>{y, x, shape});
  });
}

template <bool Log>
void backward(Stream stream, void* grad_in, const void* grad, const void* out, const SoftmaxShape& shape,
              DType grad_in_dtype, DType dtype) {
  const char* op = Log ? "log_softmax_backward" : "softmax_backward";
  visit_pair(dtype, grad_in_dtype, op, [&](auto result, auto input) {
    using S = typename decltype(result)::type;
    using G = typename decltype(input)::type;
    G* gx = static_cast<G*>(grad_in);
    const S* g = static_cast<const S*>(grad);
    const S* y = static_cast<const S*>(out);
    if (shape.inner == 1) return device::launch(stream, row_grid(shape), BackwardRows<Log, G, S>{gx, g, y, shape.dim});
    device::launch(stream, strip_grid(shape), BackwardStrips<Log, G, S>{gx, g, y, shape});
  });
}

}  // namespace

MB_DEFINE_KERNEL(softmax, (Stream stream, void* out, const void* in, SoftmaxShape shape, DType out_dtype,
                           DType in_dtype, bool log)) {
  if (log) return forward<true>(stream, out, in, shape, out_dtype, in_dtype);
  forward<false>(stream, out, in, shape, out_dtype, in_dtype);
}

MB_DEFINE_KERNEL(softmax_backward, (Stream stream, void* grad_in, const void* grad, const void* out, SoftmaxShape shape,
                                    DType grad_in_dtype, DType dtype, bool log)) {
  if (log) return backward<true>(stream, grad_in, grad, out, shape, grad_in_dtype, dtype);
  backward<false>(stream, grad_in, grad, out, shape, grad_in_dtype, dtype);
}

}  // namespace mybackend::kernels
