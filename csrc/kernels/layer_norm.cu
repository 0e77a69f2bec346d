// Layer norm and RMS norm, and their gradients.
//
// Forward: a block a row; the mean, then the variance about it (two passes over a row in cache), then the result.
// Backward: a block takes a piece of consecutive rows; it writes their input gradients and adds up, for each column,
// what they contribute to the weight and bias gradients, in a line of the workspace that is its own. A second kernel
// adds the lines in order: no atomics, the same result for any number of threads. Called by csrc/aten/layer_norm.cpp.
// Spec: test/ops/test_normalization.py.
#include "csrc/kernels/layer_norm.h"

#include <algorithm>

#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

// S is the type of the input, W that of the weights.
template <bool Rms, class S, class W>
struct Forward {
  using A = Compute<S>;
  const S* in;
  const W* weight;
  const W* bias;
  S* out;
  A* means;
  A* rstds;
  int64_t n;
  A eps;

  MB_DEVICE void operator()(Block block) const {
    const S* x = in + block.index * n;
    S* y = out + block.index * n;
    const W* w = weight;
    const W* b = bias;
    A mean = A(0);
    if constexpr (!Rms) mean = block.sum<A>(n, [&](int64_t i) { return widen(x[i]); }) / A(n);
    const A variance = block.sum<A>(n, [&](int64_t i) {
      const A centered = widen(x[i]) - mean;
      return centered * centered;
    }) / A(n);
    const A rstd = math::rsqrt(variance + eps);
    block.each(1, [&](int64_t) {
      rstds[block.index] = rstd;
      if constexpr (!Rms) means[block.index] = mean;
    });
    if (w != nullptr && b != nullptr) {
      block.each(n,
                 [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - mean) * rstd * A(widen(w[i])) + A(widen(b[i]))); });
    } else if (w != nullptr) {
      block.each(n, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - mean) * rstd * A(widen(w[i]))); });
    } else if (b != nullptr) {
      block.each(n, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - mean) * rstd + A(widen(b[i]))); });
    } else {
      block.each(n, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - mean) * rstd); });
    }
  }
};

template <bool Rms, class S, class W>
struct Backward {
  using A = Compute<S>;
  const S* grad;
  const S* in;
  const W* weight;
  const A* means;
  const A* rstds;
  S* grad_in;    // or nullptr
  A* workspace;  // or nullptr
  int64_t rows, n, pieces;

  // dx = rstd (wg - mean(wg) - xhat mean(wg xhat)), where wg = weight * grad; without the first mean for RMS norm
  template <class Weight>
  MB_DEVICE void input_gradient(Block block, int64_t row, A mean, A rstd, Weight w) const {
    const S* g = grad + row * n;
    const S* x = in + row * n;
    S* dx = grad_in + row * n;
    A mean_wg = A(0);
    if constexpr (!Rms) mean_wg = block.sum<A>(n, [&](int64_t i) { return widen(g[i]) * w(i); }) / A(n);
    const A mean_wgx =
        block.sum<A>(n, [&](int64_t i) { return widen(g[i]) * w(i) * (widen(x[i]) - mean); }) * rstd / A(n);
    // One element is its own mean: the gradient is zero, which rounding in the difference below would not give.
    const A scale = !Rms && n == 1 ? A(0) : rstd;
    block.each(n, [&](int64_t i) {
      dx[i] = narrow<S>(scale * (widen(g[i]) * w(i) - mean_wg - (widen(x[i]) - mean) * rstd * mean_wgx));
    });
  }

  MB_DEVICE void operator()(Block block) const {
    const int64_t begin = rows * block.index / pieces, end = rows * (block.index + 1) / pieces;
    A* dw = workspace + block.index * n;
    A* db = workspace + (pieces + block.index) * n;
    if (workspace != nullptr) {
      block.each(n, [&](int64_t i) { dw[i] = A(0); });
      block.each(n, [&](int64_t i) { db[i] = A(0); });
    }
    const W* w = weight;
    for (int64_t row = begin; row < end; row++) {
      const A mean = Rms ? A(0) : means[row], rstd = rstds[row];
      if (grad_in != nullptr) {
        if (w != nullptr) {
          input_gradient(block, row, mean, rstd, [&](int64_t i) { return A(widen(w[i])); });
        } else {
          input_gradient(block, row, mean, rstd, [](int64_t) { return A(1); });
        }
      }
      if (workspace == nullptr) continue;
      const S* g = grad + row * n;
      const S* x = in + row * n;
      // The same thread has the same columns in every row, so nothing has to be waited for.
      block.each(n, [&](int64_t i) {
        dw[i] += widen(g[i]) * (widen(x[i]) - mean) * rstd;
        if constexpr (!Rms) db[i] += widen(g[i]);
      });
    }
  }
};

constexpr int kColumns = 128;

template <class A, class W>
struct AddPieces {
  const A* workspace;
  W* sum;
  int64_t pieces, n;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, total, kColumns);
    const int64_t first = block.index * kColumns;
    const int64_t width = n - first < kColumns ? n - first : kColumns;
    block.each(width, [&](int64_t i) { total[i] = A(0); });
    for (int64_t piece = 0; piece < pieces; piece++) {
      const A* line = workspace + piece * n + first;
      block.each(width, [&](int64_t i) { total[i] += line[i]; });
    }
    W* result = sum + first;
    block.each(width, [&](int64_t i) { result[i] = narrow<W>(total[i]); });
  }
};

int threads_for(int64_t n) {
  return int(std::min<int64_t>(512, std::max<int64_t>(32, device::ceil_div(n, 4))));
}

// Calls f(Type<input>, Type<weight>): equal types, or float weights beside half and bfloat16.
template <class F>
void visit_types(const LayerNormArgs& args, const char* op, F f) {
  visit<Join<Floats, Halves>>(args.dtype, op, [&](auto type) {
    using S = typename decltype(type)::type;
    if (args.weight_dtype == args.dtype) return f(type, type);
    if constexpr (!std::is_same_v<S, Compute<S>>) {
      if (args.weight_dtype == DType::Float) return f(type, Type<float>{});
    }
    throw DTypeNotImplemented(op, args.weight_dtype);
  });
}

template <bool Rms>
void forward(Stream stream, const LayerNormArgs& args, double eps, void* out, void* mean, void* rstd) {
  visit_types(args, Rms ? "rms_norm" : "layer_norm", [&](auto input, auto weights) {
    using S = typename decltype(input)::type;
    using W = typename decltype(weights)::type;
    using A = Compute<S>;
    device::launch(stream, {args.rows, threads_for(args.n), args.n},
                   Forward<Rms, S, W>{static_cast<const S*>(args.in), static_cast<const W*>(args.weight),
                                      static_cast<const W*>(args.bias), static_cast<S*>(out), static_cast<A*>(mean),
                                      static_cast<A*>(rstd), args.n, A(eps)});
  });
}

template <bool Rms>
void backward(Stream stream, const LayerNormArgs& args, const void* grad, const void* mean, const void* rstd,
              void* grad_in, void* grad_weight, void* grad_bias, void* workspace) {
  visit_types(args, Rms ? "rms_norm_backward" : "layer_norm_backward", [&](auto input, auto weights) {
    using S = typename decltype(input)::type;
    using W = typename decltype(weights)::type;
    using A = Compute<S>;
    const int64_t pieces = layer_norm_pieces(args.rows, args.n);
    A* lines = static_cast<A*>(workspace);
    device::launch(
        stream, {pieces, threads_for(args.n), args.n * device::ceil_div(args.rows, std::max<int64_t>(1, pieces))},
        Backward<Rms, S, W>{static_cast<const S*>(grad), static_cast<const S*>(args.in),
                            static_cast<const W*>(args.weight), static_cast<const A*>(mean),
                            static_cast<const A*>(rstd), static_cast<S*>(grad_in), lines, args.rows, args.n, pieces});
    const device::Grid columns{device::ceil_div(args.n, kColumns), kColumns, kColumns * pieces};
    if (grad_weight != nullptr)
      device::launch(stream, columns, AddPieces<A, W>{lines, static_cast<W*>(grad_weight), pieces, args.n});
    if (grad_bias != nullptr)
      device::launch(stream, columns,
                     AddPieces<A, W>{lines + pieces * args.n, static_cast<W*>(grad_bias), pieces, args.n});
  });
}

}  // namespace

MB_DEFINE_KERNEL(layer_norm,
                 (Stream stream, const LayerNormArgs& args, double eps, void* out, void* mean, void* rstd)) {
  if (args.rms) return forward<true>(stream, args, eps, out, mean, rstd);
  forward<false>(stream, args, eps, out, mean, rstd);
}

MB_DEFINE_KERNEL(layer_norm_backward,
                 (Stream stream, const LayerNormArgs& args, const void* grad, const void* mean, const void* rstd,
                  void* grad_in, void* grad_weight, void* grad_bias, void* workspace)) {
  if (args.rms) return backward<true>(stream, args, grad, mean, rstd, grad_in, grad_weight, grad_bias, workspace);
  backward<false>(stream, args, grad, mean, rstd, grad_in, grad_weight, grad_bias, workspace);
}

}  // namespace mybackend::kernels
