// Attention, backward, in two kernels that both recompute the weights from the saved logarithm of their sum:
//
//   queries as lanes   dq = ds k, walking over the keys
//   keys as lanes      dv = w^T do and dk = ds^T q, walking over the queries of every head that reads the key head
//
// or, where there are enough heads for a block each, in one that also adds up dq in a workspace.
//
// with w = exp(scores - logsumexp), ds = w (do v^T - delta) and delta = sum of do * out. Each gradient is written by
// one block that adds in a fixed order: no atomics, the same result for any number of threads. Called by
// csrc/aten/attention.cpp. Spec: test/ops/test_attention.py.
#include <algorithm>

#include "csrc/kernels/attention.h"
#include "csrc/kernels/attention_tile.h"

namespace mybackend::kernels {
namespace {

using namespace attention_tile;

template <class S>
struct Delta {
  AttentionArgs args;
  Heads grad, out;
  float* delta;

  MB_DEVICE void operator()(Block block) const {
    const Place place(block.index, args.heads, args.queries, 1);
    const S* g = rows_of<const S>(grad, place.batch, place.head, place.first);
    const S* y = rows_of<const S>(out, place.batch, place.head, place.first);
    const float sum =
        block.sum<float>(args.value_width, [&](int64_t e) { return device::widen(g[e]) * device::widen(y[e]); });
    block.each(1, [&](int64_t) { delta[block.index] = sum; });
  }
};

template <class S, int Width>
struct QueryGradient {
  static constexpr int N = lanes_for<Width, 4>;
  AttentionArgs args;
  AttentionGradients g;

  // scores -> ds, from scores, do v^T and what is known of each query.
  MB_DEVICE void differentiate(Block block, const Place& place, int64_t first_key, int64_t keys, float* scores,
                               const float* products, const float* logsumexp, const float* delta) const {
    const Dropout dropout(args);
    const int64_t line_of_first = (place.batch * args.heads + place.head) * args.queries + place.first;
    const int64_t count = args.queries - place.first < N ? args.queries - place.first : N;
    for (int64_t j = 0; j < keys; j++) {
      float* line = scores + j * N;
      const float* product = products + j * N;
      bias_and_mask<N, true>(block, args, place, first_key + j, line);
      if (args.dropout > 0.0f) {
        block.each(N, [&](int64_t i) {
          const float kept = product[i] * dropout.factor(line_of_first + i, first_key + j);
          line[i] = math::exp_down(line[i] - logsumexp[i]) * (kept - delta[i]);
        });
      } else {
        block.each(N, [&](int64_t i) { line[i] = math::exp_down(line[i] - logsumexp[i]) * (product[i] - delta[i]); });
      }
      if (g.grad_scores != nullptr) {
        float* to = g.grad_scores + line_of_first * args.keys + first_key + j;
        block.each(count, [&](int64_t i) { to[i * args.keys] = line[i]; });
      }
    }
  }

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, float, query, Width* N);
    MB_SHARED(block, float, grad, Width* N);
    MB_SHARED(block, float, result, Width* N);
    MB_SHARED(block, float, scores, kStep* N);
    MB_SHARED(block, float, products, kStep* N);
    MB_SHARED(block, float, logsumexp, N);
    MB_SHARED(block, float, delta, N);
    MB_SHARED(block, float, staged_k, device::staging<S>(kStep * Width));
    MB_SHARED(block, float, staged_v, device::staging<S>(kStep * Width));
    const Place place(block.index, args.heads, args.queries, N);
    const int64_t kv_head = place.head / (args.heads / args.kv_heads);
    const int64_t count = args.queries - place.first < N ? args.queries - place.first : N;
    const int64_t visible = args.causal && place.first + count < args.keys ? place.first + count : args.keys;
    const int64_t line = (place.batch * args.heads + place.head) * args.queries + place.first;
    device::to_lanes<N>(block, rows_of<const S>(args.q, place.batch, place.head, place.first), args.q.row, count,
                        args.width, args.scale, query);
    device::to_lanes<N>(block, rows_of<const S>(g.grad, place.batch, place.head, place.first), g.grad.row, count,
                        args.value_width, 1.0f, grad);
    block.each(args.width * N, [&](int64_t e) { result[e] = 0.0f; });
    block.each(N, [&](int64_t i) {
      logsumexp[i] = i < count ? g.logsumexp[line + i] : INFINITY;
      delta[i] = i < count ? g.delta[line + i] : 0.0f;
    });
    block.sync();
    for (int64_t first_key = 0; first_key < visible; first_key += kStep) {
      const int64_t keys = visible - first_key < kStep ? visible - first_key : kStep;
      const auto k = device::stage(block, rows_of<const S>(args.k, place.batch, kv_head, first_key), args.k.row, keys,
                                   args.width, staged_k);
      const auto v = device::stage(block, rows_of<const S>(args.v, place.batch, kv_head, first_key), args.v.row, keys,
                                   args.value_width, staged_v);
      device::product<N, false>(block, keys, args.width, k, query, scores);
      device::product<N, false>(block, keys, args.value_width, v, grad, products);
      block.sync();
      differentiate(block, place, first_key, keys, scores, products, logsumexp, delta);
      block.sync();
      if (g.grad_q.data != nullptr) device::product<N, true>(block, args.width, keys, k.transposed(), scores, result);
      block.sync();
    }
    if (g.grad_scores != nullptr && visible < args.keys) clear_hidden(block, line, count, visible);
    if (g.grad_q.data == nullptr) return;
    block.each(N, [&](int64_t i) { delta[i] = args.scale; });
    block.sync();
    device::from_lanes<N>(block, result, delta, count, args.width,
                          rows_of<S>(g.grad_q, place.batch, place.head, place.first), g.grad_q.row);
  }

  MB_DEVICE void clear_hidden(Block block, int64_t line, int64_t count, int64_t visible) const {
    for (int64_t i = 0; i < count; i++) {
      float* to = g.grad_scores + (line + i) * args.keys + visible;
      block.each(args.keys - visible, [&](int64_t j) { to[j] = 0.0f; });
    }
  }
};

// Without WithQuery a block takes one tile of keys of a key head; with it, all of them, and adds up dq = ds k in the
// workspace on the way, whose rows nobody else touches.
template <class S, int Width, bool WithQuery>
struct KeyGradients {
  static constexpr int N = lanes_for < Width, WithQuery ? 5 : 4 > ;
  AttentionArgs args;
  AttentionGradients g;

  MB_DEVICE int64_t line_of(const Place& place) const { return (place.batch * args.heads + place.head) * args.queries; }

  // scores -> weights after dropout, do v^T -> ds.
  MB_DEVICE void differentiate(Block block, const Place& place, int64_t line, int64_t first_query, int64_t queries,
                               float* scores, float* products) const {
    const Dropout dropout(args);
    for (int64_t i = 0; i < queries; i++) {
      float* weights = scores + i * N;
      float* product = products + i * N;
      bias_and_mask<N, false>(block, args, place, first_query + i, weights);
      const float logsumexp = g.logsumexp[line + i], delta = g.delta[line + i];
      if (args.dropout > 0.0f) {
        block.each(N, [&](int64_t j) {
          const float kept = dropout.factor(line + i, place.first + j), weight = math::exp_down(weights[j] - logsumexp);
          product[j] = weight * (product[j] * kept - delta);
          weights[j] = weight * kept;
        });
      } else {
        block.each(N, [&](int64_t j) {
          const float weight = math::exp_down(weights[j] - logsumexp);
          product[j] = weight * (product[j] - delta);
          weights[j] = weight;
        });
      }
    }
  }

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, float, key, Width* N);
    MB_SHARED(block, float, value, Width* N);
    MB_SHARED(block, float, grad_k, Width* N);
    MB_SHARED(block, float, grad_v, Width* N);
    MB_SHARED(block, float, scores, kStep* N);
    MB_SHARED(block, float, products, kStep* N);
    MB_SHARED(block, float, factor, N);
    MB_SHARED(block, float, key_rows, WithQuery ? N* Width : 1);
    MB_SHARED(block, float, staged_q, device::staging<S>(kStep * Width));
    MB_SHARED(block, float, staged_grad, device::staging<S>(kStep * Width));
    const int64_t tiles = device::ceil_div(args.keys, N), group = args.heads / args.kv_heads;
    Place place(block.index, args.kv_heads, WithQuery ? 1 : args.keys, N);
    const int64_t kv_head = place.head;
    if constexpr (WithQuery) clear(block, place, group);
    for (int64_t tile = 0; tile < (WithQuery ? tiles : 1); tile++) {
      if constexpr (WithQuery) place.first = tile * N;
      const int64_t count = args.keys - place.first < N ? args.keys - place.first : N;
      const S* k = rows_of<const S>(args.k, place.batch, kv_head, place.first);
      device::to_lanes<N>(block, k, args.k.row, count, args.width, args.scale, key);
      device::to_lanes<N>(block, rows_of<const S>(args.v, place.batch, kv_head, place.first), args.v.row, count,
                          args.value_width, 1.0f, value);
      if constexpr (WithQuery) copy_rows(block, k, count, key_rows);
      block.each(args.width * N, [&](int64_t e) { grad_k[e] = 0.0f; });
      block.each(args.value_width * N, [&](int64_t e) { grad_v[e] = 0.0f; });
      block.sync();
      for (place.head = kv_head * group; place.head < (kv_head + 1) * group; place.head++) {
        const int64_t line = line_of(place);
        for (int64_t first = args.causal ? place.first / kStep * kStep : 0; first < args.queries; first += kStep) {
          const int64_t queries = args.queries - first < kStep ? args.queries - first : kStep;
          const auto q = device::stage(block, rows_of<const S>(args.q, place.batch, place.head, first), args.q.row,
                                       queries, args.width, staged_q);
          const auto grad = device::stage(block, rows_of<const S>(g.grad, place.batch, place.head, first), g.grad.row,
                                          queries, args.value_width, staged_grad);
          device::product<N, false>(block, queries, args.width, q, key, scores);
          device::product<N, false>(block, queries, args.value_width, grad, value, products);
          block.sync();
          differentiate(block, place, line + first, first, queries, scores, products);
          block.sync();
          device::product<N, true>(block, args.value_width, queries, grad.transposed(), scores, grad_v);
          device::product<N, true>(block, args.width, queries, q.transposed(), products, grad_k);
          if constexpr (WithQuery)
            device::product<Width, true>(block, queries, count, device::Factor<float>{products, N, 1}, key_rows,
                                         g.workspace + (line + first) * Width, args.width);
          block.sync();
        }
      }
      write(block, grad_k, args.scale, count, args.width, factor,
            rows_of<S>(g.grad_k, place.batch, kv_head, place.first), g.grad_k.row);
      write(block, grad_v, 1.0f, count, args.value_width, factor,
            rows_of<S>(g.grad_v, place.batch, kv_head, place.first), g.grad_v.row);
      block.sync();
    }
    if constexpr (WithQuery) write_queries(block, place, kv_head * group, group);
  }

  MB_DEVICE void clear(Block block, Place place, int64_t group) const {
    place.head *= group;
    float* rows = g.workspace + line_of(place) * Width;
    block.each(group * args.queries * Width, [&](int64_t e) { rows[e] = 0.0f; });
  }

  // The keys as rows of Width elements, zero beyond their width.
  MB_DEVICE void copy_rows(Block block, const S* k, int64_t count, float* rows) const {
    for (int64_t j = 0; j < count; j++) {
      const S* from = k + j * args.k.row;
      float* to = rows + j * Width;
      block.each(args.width, [&](int64_t d) { to[d] = device::widen(from[d]); });
      block.each(Width - args.width, [&](int64_t d) { to[args.width + d] = 0.0f; });
    }
  }

  MB_DEVICE void write(Block block, const float* lanes, float scale, int64_t count, int64_t width, float* factor,
                       S* rows, int64_t stride) const {
    block.sync();
    block.each(N, [&](int64_t i) { factor[i] = scale; });
    block.sync();
    device::from_lanes<N>(block, lanes, factor, count, width, rows, stride);
  }

  MB_DEVICE void write_queries(Block block, Place place, int64_t first_head, int64_t group) const {
    for (place.head = first_head; place.head < first_head + group; place.head++) {
      const float* rows = g.workspace + line_of(place) * Width;
      for (int64_t i = 0; i < args.queries; i++) {
        const float* from = rows + i * Width;
        S* to = rows_of<S>(g.grad_q, place.batch, place.head, i);
        block.each(args.width, [&](int64_t d) { to[d] = device::narrow<S>(args.scale * from[d]); });
      }
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(attention_backward, (Stream stream, const AttentionArgs& args, const AttentionGradients& gradients)) {
  const char* op = "scaled_dot_product_attention_backward";
  visit<Join<Types<float>, Halves>>(args.dtype, op, [&](auto type) {
    using S = typename decltype(type)::type;
    device::launch(stream, {args.batch * args.heads * args.queries, 32, args.value_width},
                   Delta<S>{args, gradients.grad, gradients.out, gradients.delta});
  });
  if (gradients.workspace != nullptr) {
    return visit_shape(args, args.keys, op, [&](auto type, auto width) {
      using S = typename decltype(type)::type;
      constexpr int Width = decltype(width)::value;
      device::launch(stream, {args.batch * args.kv_heads, kThreads, args.queries * args.keys * args.width},
                     KeyGradients<S, Width, true>{args, gradients});
    });
  }
  if (gradients.grad_q.data != nullptr || gradients.grad_scores != nullptr)
    visit_shape(args, args.queries, op, [&](auto type, auto width) {
      using S = typename decltype(type)::type;
      constexpr int Width = decltype(width)::value, N = lanes_for<Width, 4>;
      const int64_t blocks = args.batch * args.heads * device::ceil_div(args.queries, N);
      device::launch(stream, {blocks, kThreads, args.keys * N * args.width / 4},
                     QueryGradient<S, Width>{args, gradients});
    });
  if (gradients.grad_k.data != nullptr)
    visit_shape(args, args.keys, op, [&](auto type, auto width) {
      using S = typename decltype(type)::type;
      constexpr int Width = decltype(width)::value, N = lanes_for<Width, 4>;
      const int64_t blocks = args.batch * args.kv_heads * device::ceil_div(args.keys, N);
      device::launch(stream, {blocks, kThreads, args.queries * args.heads / args.kv_heads * N * args.width / 4},
                     KeyGradients<S, Width, false>{args, gradients});
    });
}

}  // namespace mybackend::kernels
