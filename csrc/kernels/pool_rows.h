// How pooling kernels go over their results: row by row. A row is all columns (and, channels_last, all channels) of one
// (plane, depth, height).
//
// On a GPU the elements of some rows are spread over a block's threads, each computed by `element`. On the host a
// block's only thread computes a row at once, by `row`: loops over columns or channels are innermost, so that they
// vectorise, and the bookkeeping of windows is shared.
#pragma once

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/kernels/pool.h"

namespace mybackend::kernels::pool {

using device::Block;

constexpr int kChunk = 256;  // columns or channels whose running results a row keeps at a time
constexpr int64_t kElementsPerBlock = 512;
constexpr int kThreads = 128;

struct Range {
  int begin, end;  // of the other array, cut to it
};

// Input positions that output position `o` looks at: begin, begin + step, ... below end.
MB_DEVICE Range window(const PoolGeometry& g, int d, int o) {
  if (g.adaptive) {
    const int64_t in = g.in[d], out = g.out[d];
    return {int(o * in / out), int(((o + 1) * in + out - 1) / out)};
  }
  const int stride = int(g.stride[d]), padding = int(g.padding[d]), step = int(g.dilation[d]);
  int begin = o * stride - padding;
  int end = begin + (int(g.kernel[d]) - 1) * step + 1;
  begin = begin < 0 ? begin + (-begin + step - 1) / step * step : begin;
  end = end < int(g.in[d]) ? end : int(g.in[d]);
  return {begin, end};
}

// Output positions whose window may contain input position `i`.
MB_DEVICE Range covering(const PoolGeometry& g, int d, int i) {
  if (g.adaptive) {
    const int64_t in = g.in[d], out = g.out[d];
    return {int(i * out / in), int(((i + 1) * out + in - 1) / in)};
  }
  const int stride = int(g.stride[d]), at = i + int(g.padding[d]);
  const int reach = (int(g.kernel[d]) - 1) * int(g.dilation[d]) + 1;
  const int begin = at < reach ? 0 : (at - reach) / stride + 1;
  const int end = at / stride + 1;
  return {begin, end < int(g.out[d]) ? end : int(g.out[d])};
}

// Output columns o of [begin, end) for which o * stride + offset lies in [low, high).
MB_DEVICE Range columns_that_meet(int begin, int end, int stride, int offset, int low, int high) {
  const int first = offset >= low ? 0 : (low - offset + stride - 1) / stride;
  const int last = offset >= high ? 0 : (high - 1 - offset) / stride + 1;
  return {first > begin ? first : begin, last < end ? last : end};
}

struct Row {
  int64_t plane;  // batch * channels + channel, or batch when channels lie last
  int d, h;
};

MB_DEVICE Row row_at(const int64_t* sizes, int64_t index) {
  const int64_t slice = index / sizes[1];
  return {slice / sizes[0], int(slice % sizes[0]), int(index % sizes[1])};
}

constexpr int64_t row_length(const PoolGeometry& g, const int64_t* sizes) {
  return g.channels_last ? sizes[2] * g.channels : sizes[2];
}
constexpr int64_t rows_of(const PoolGeometry& g, const int64_t* sizes) {
  return (g.channels_last ? g.batch : g.batch * g.channels) * sizes[0] * sizes[1];
}
constexpr int64_t rows_per_block(const PoolGeometry& g, const int64_t* sizes) {
  const int64_t length = row_length(g, sizes);
  return length < kElementsPerBlock ? kElementsPerBlock / length : 1;
}

// Where the first element of a plane (and channel, when channels lie last) of an array of `sizes` is; neighbours in a
// plane are `pitch` apart.
MB_DEVICE int64_t plane_offset(const PoolGeometry& g, const int64_t* sizes, int64_t plane, int64_t channel) {
  return plane * sizes[0] * sizes[1] * sizes[2] * (g.channels_last ? g.channels : 1) + channel;
}
MB_DEVICE int64_t pitch(const PoolGeometry& g) {
  return g.channels_last ? g.channels : 1;
}

// Calls kernel.element or kernel.row for what a block owns of an array of `sizes`.
template <class K>
MB_DEVICE void walk(Block block, const PoolGeometry& g, const int64_t* sizes, const K& kernel) {
  const int64_t total = rows_of(g, sizes), per_block = rows_per_block(g, sizes);
  const int64_t begin = block.index * per_block;
  const int64_t end = begin + per_block < total ? begin + per_block : total;
  if constexpr (device::kThreadedBlocks) {
    const int64_t length = row_length(g, sizes);
    block.each((end - begin) * length, [&](int64_t i) {
      const int64_t in_row = i % length, row = begin + i / length;
      const int64_t channel = g.channels_last ? in_row % g.channels : 0;
      kernel.element(row_at(sizes, row), int(g.channels_last ? in_row / g.channels : in_row), channel);
    });
  } else {
    for (int64_t row = begin; row < end; row++) kernel.row(row_at(sizes, row));
  }
}

// `terms` is about how many elements one result needs.
template <class K>
void launch_rows(device::Stream stream, const PoolGeometry& g, const int64_t* sizes, int64_t terms, const K& kernel) {
  const int64_t per_block = rows_per_block(g, sizes);
  device::launch(stream,
                 {device::ceil_div(rows_of(g, sizes), per_block), kThreads,
                  per_block * row_length(g, sizes) * (terms < 1 ? 1 : terms)},
                 kernel);
}

// About how many input elements an output looks at.
inline int64_t window_size(const PoolGeometry& g) {
  int64_t size = 1;
  for (int d = 0; d < 3; d++) size *= g.adaptive ? device::ceil_div(g.in[d], g.out[d] < 1 ? 1 : g.out[d]) : g.kernel[d];
  return size;
}

}  // namespace mybackend::kernels::pool
