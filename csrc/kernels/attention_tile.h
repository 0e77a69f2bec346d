// What the attention kernels share: tile sizes, and what happens to a tile of scores between two products.
//
// A block keeps kLanes queries (or keys) as lanes and walks over the other side kStep rows at a time. A tile is
// kStep x kLanes; lane loops touch a lane from one thread only, products touch a tile from all threads.
#pragma once

#include <cmath>

#include "csrc/device/exponential.h"
#include "csrc/device/philox.h"
#include "csrc/device/product.h"
#include "csrc/kernels/attention.h"

namespace mybackend::kernels::attention_tile {

using device::Block;

constexpr int kStep = device::kThreadedBlocks ? 32 : 64;
constexpr int kThreads = 256;

// Lanes for head widths up to Width: as many as that many lane matrices leave room for in a GPU's shared memory.
template <int Width, int Matrices>
constexpr int lanes_for = (!device::kThreadedBlocks || Matrices <= 2 ? 4096
                           : Matrices <= 4                           ? 2048
                                                                     : 1024) /
                          Width;

template <class S>
MB_DEVICE S* rows_of(const Heads& array, int64_t batch, int64_t head, int64_t row) {
  return static_cast<S*>(array.data) + batch * array.batch + head * array.head + row * array.row;
}

// Where a block works: a batch, a head, and its first row among the lanes' side.
struct Place {
  int64_t batch, head, first;
  MB_DEVICE Place(int64_t index, int64_t heads, int64_t rows, int64_t lanes) {
    const int64_t blocks = device::ceil_div(rows, lanes);
    first = index % blocks * lanes;
    head = index / blocks % heads;
    batch = index / blocks / heads;
  }
};

// The dropout decision of one weight: four neighbouring keys share a Philox block.
struct Dropout {
  uint64_t seed, offset;
  int64_t groups;  // of four keys, a query
  float probability, keep_scale;

  MB_DEVICE explicit Dropout(const AttentionArgs& args)
      : seed(args.seed),
        offset(args.offset),
        groups(device::ceil_div(args.keys, 4)),
        probability(args.dropout),
        keep_scale(args.dropout < 1.0f ? 1.0f / (1.0f - args.dropout) : 0.0f) {}

  // `line` counts queries over batch and heads. Zero, or what a kept weight is multiplied with.
  MB_DEVICE float factor(int64_t line, int64_t key) const {
    const device::Words4 words = device::philox(seed, uint64_t(line * groups + key / 4), offset);
    const uint32_t low = (key & 1) != 0 ? words.word[1] : words.word[0];
    const uint32_t high = (key & 1) != 0 ? words.word[3] : words.word[2];
    return device::uniform_float((key & 2) != 0 ? high : low) >= probability ? keep_scale : 0.0f;
  }
};

// Adds the bias and hides keys after the query, for one query (or key) and all lanes of the other side. `scores` is a
// line of a tile; lane i is query first + i with LanesAreQueries, key first + i otherwise; `other` is the remaining
// index.
template <int N, bool LanesAreQueries>
MB_DEVICE void bias_and_mask(Block block, const AttentionArgs& args, const Place& place, int64_t other, float* scores) {
  const AttentionBias& bias = args.bias;
  if (bias.data != nullptr) {
    const int64_t lane_stride = LanesAreQueries ? bias.row : bias.column;
    const int64_t other_stride = LanesAreQueries ? bias.column : bias.row;
    const float* line = bias.data + place.batch * bias.batch + place.head * bias.head + place.first * lane_stride +
                        other * other_stride;
    const int64_t rest = (LanesAreQueries ? args.queries : args.keys) - place.first;
    if (lane_stride == 0) {
      block.each(N, [&](int64_t i) { scores[i] += line[0]; });
    } else {
      block.each(rest < N ? rest : N, [&](int64_t i) { scores[i] += line[i * lane_stride]; });
    }
  }
  if (args.causal && (LanesAreQueries ? other > place.first : place.first + N - 1 > other))
    block.each(N, [&](int64_t i) {
      const bool hidden = LanesAreQueries ? other > place.first + i : place.first + i > other;
      scores[i] = hidden ? -INFINITY : scores[i];
    });
}

// Calls f(Type<S>, integral_constant<attention_width>).
template <class F>
void visit_shape(const AttentionArgs& args, int64_t lane_rows, const char* op, F f) {
  visit<Join<Types<float>, Halves>>(args.dtype, op, [&](auto type) {
    switch (attention_width(args, lane_rows)) {
      case 64:
        return f(type, std::integral_constant<int, 64>{});
      case 128:
        return f(type, std::integral_constant<int, 128>{});
      default:
        return f(type, std::integral_constant<int, 256>{});
    }
  });
}

}  // namespace mybackend::kernels::attention_tile
