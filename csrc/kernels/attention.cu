// Attention, forward: a block takes a few queries of one head as lanes and walks over the keys once.
//
// For each step of keys: scores = k q^T; the largest score and the sum of exponentials of each query are brought up to
// date (what was added so far is scaled down when the largest grows); result += v^T weights. Scheme: Dao et al.,
// "FlashAttention", 2022; online softmax: Milakov and Gimelshein, 2018.
// Called by csrc/aten/attention.cpp. Spec: test/ops/test_attention.py.
#include "csrc/kernels/attention.h"

#include <algorithm>

#include "csrc/kernels/attention_tile.h"

namespace mybackend::kernels {
namespace {

using namespace attention_tile;

template <class S, int Width>
struct Forward {
  static constexpr int N = lanes_for<Width, 2>;
  AttentionArgs args;
  Heads out;
  float* logsumexp;

  // Turns scores into weights; `correction` is what earlier sums have to be multiplied with.
  MB_DEVICE void soften(Block block, const Place& place, int64_t first_key, int64_t keys, float* scores, float* peak,
                        float* total, float* correction) const {
    block.each(N, [&](int64_t i) { correction[i] = peak[i]; });
    for (int64_t j = 0; j < keys; j++) {
      float* line = scores + j * N;
      bias_and_mask<N, true>(block, args, place, first_key + j, line);
      block.each(N, [&](int64_t i) { peak[i] = line[i] > peak[i] ? line[i] : peak[i]; });
    }
    block.each(N, [&](int64_t i) {
      // A query that has seen no key yet has a peak of -inf, which cannot be subtracted.
      correction[i] = peak[i] == -INFINITY ? 1.0f : math::exp_down(correction[i] - peak[i]);
      total[i] *= correction[i];
    });
    for (int64_t j = 0; j < keys; j++) {
      float* line = scores + j * N;
      block.each(N, [&](int64_t i) {
        const float weight = math::exp_down(line[i] - (peak[i] == -INFINITY ? 0.0f : peak[i]));
        total[i] += weight;
        line[i] = weight;
      });
    }
    if (args.dropout > 0.0f) {
      const Dropout dropout(args);
      const int64_t line_of_first = (place.batch * args.heads + place.head) * args.queries + place.first;
      for (int64_t j = 0; j < keys; j++) {
        float* line = scores + j * N;
        block.each(N, [&](int64_t i) { line[i] *= dropout.factor(line_of_first + i, first_key + j); });
      }
    }
  }

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, float, query, Width* N);
    MB_SHARED(block, float, result, Width* N);
    MB_SHARED(block, float, scores, kStep* N);
    MB_SHARED(block, float, peak, N);
    MB_SHARED(block, float, total, N);
    MB_SHARED(block, float, correction, N);
    MB_SHARED(block, float, staged, device::staging<S>(kStep * Width));
    const Place place(block.index, args.heads, args.queries, N);
    const int64_t kv_head = place.head / (args.heads / args.kv_heads);
    const int64_t count = args.queries - place.first < N ? args.queries - place.first : N;
    const int64_t visible = args.causal && place.first + count < args.keys ? place.first + count : args.keys;
    device::to_lanes<N>(block, rows_of<const S>(args.q, place.batch, place.head, place.first), args.q.row, count,
                        args.width, args.scale, query);
    block.each(args.value_width * N, [&](int64_t e) { result[e] = 0.0f; });
    block.each(N, [&](int64_t i) {
      peak[i] = -INFINITY;
      total[i] = 0.0f;
    });
    block.sync();
    for (int64_t first_key = 0; first_key < visible; first_key += kStep) {
      const int64_t keys = visible - first_key < kStep ? visible - first_key : kStep;
      const auto k = device::stage(block, rows_of<const S>(args.k, place.batch, kv_head, first_key), args.k.row, keys,
                                   args.width, staged);
      device::product<N, false>(block, keys, args.width, k, query, scores);
      block.sync();
      soften(block, place, first_key, keys, scores, peak, total, correction);
      for (int64_t e = 0; e < args.value_width; e++) {
        float* line = result + e * N;
        block.each(N, [&](int64_t i) { line[i] *= correction[i]; });
      }
      block.sync();
      const auto v = device::stage(block, rows_of<const S>(args.v, place.batch, kv_head, first_key), args.v.row, keys,
                                   args.value_width, staged);
      device::product<N, true>(block, args.value_width, keys, v.transposed(), scores, result);
      block.sync();
    }
    float* line = logsumexp + (place.batch * args.heads + place.head) * args.queries + place.first;
    block.each(N, [&](int64_t i) {
      const float sum = total[i];
      if (i < count) line[i] = peak[i] == -INFINITY ? INFINITY : peak[i] + math::log(sum);
      correction[i] = sum == 0.0f ? 0.0f : 1.0f / sum;
    });
    block.sync();
    device::from_lanes<N>(block, result, correction, count, args.value_width,
                          rows_of<S>(out, place.batch, place.head, place.first), out.row);
  }
};

}  // namespace

MB_DEFINE_KERNEL(attention, (Stream stream, const AttentionArgs& args, const Heads& out, float* logsumexp)) {
  visit_shape(args, args.queries, "scaled_dot_product_attention", [&](auto type, auto width) {
    using S = typename decltype(type)::type;
    constexpr int Width = decltype(width)::value;
    constexpr int N = lanes_for<Width, 2>;
    const int64_t blocks = args.batch * args.heads * device::ceil_div(args.queries, N);
    device::launch(stream, {blocks, kThreads, args.keys * N * args.width / 8}, Forward<S, Width>{args, out, logsumexp});
  });
}

}  // namespace mybackend::kernels
