// Entry points of csrc/kernels/attention*.cu: softmax(q k^T * scale + bias) v without ever storing the scores.
//
// q, k, v are batch x heads x rows x width with any strides but the last, which is 1. Query heads are a multiple of key
// heads: query head h reads key head h / (heads / kv_heads). Widths are at most 256. Everything is accumulated in
// float.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

// One array of heads: where element (batch, head, row, 0) lies, strides in elements.
struct Heads {
  void* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
};

// Float; strides of 0 broadcast. data is nullptr where there is none.
struct AttentionBias {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 0;
};

struct AttentionArgs {
  int64_t batch, heads, kv_heads, queries, keys, width, value_width;
  DType dtype;
  float scale;
  bool causal;    // a query sees the keys up to its own position, counted from the first
  float dropout;  // probability of dropping a weight; the mask follows from seed and offset
  uint64_t seed, offset;
  Heads q, k, v;
  AttentionBias bias;
};

// The class of head widths a kernel is built for: the smallest that holds the heads, but few rows on the lanes' side
// take a wider class, which has fewer lanes.
inline int attention_width(const AttentionArgs& args, int64_t lane_rows) {
  const int64_t width = args.width > args.value_width ? args.width : args.value_width;
  return width <= 64 && lane_rows > 32 ? 64 : width <= 128 && lane_rows > 16 ? 128 : 256;
}

// out, and the logarithm of the sum of exponentials of each query (float, batch x heads x queries, dense). A query that
// sees no key gets zeros and +inf, which makes its weights zero in the backward.
MB_DECLARE_KERNEL(attention, void(Stream stream, const AttentionArgs& args, const Heads& out, float* logsumexp));

struct AttentionGradients {
  Heads grad, out;  // of the result, and the result
  const float* logsumexp;
  float* delta;          // workspace, as large as logsumexp
  Heads grad_q;          // each may be absent
  Heads grad_k, grad_v;  // both or none
  float* grad_scores;    // batch x heads x queries x keys, dense, or nullptr: the gradient of a full bias
  float* workspace;      // attention_workspace elements where one block is to do all of a key head, or nullptr
};

// Elements of the workspace with which the backward takes one pass instead of two (five products a tile, not seven), a
// block a key head: worth it when there are enough heads to keep the device busy. Needs all of grad_q, grad_k and
// grad_v, and no grad_scores.
inline int64_t attention_workspace(const AttentionArgs& args) {
  return args.batch * args.heads * args.queries * attention_width(args, args.keys);
}

MB_DECLARE_KERNEL(attention_backward,
                  void(Stream stream, const AttentionArgs& args, const AttentionGradients& gradients));

}  // namespace mybackend::kernels
