// How pooling kernels go over their results: in groups of lanes, each lane one element of the output array.
//
// Lanes of a group are neighbours in memory: positions of one plane (contiguous) or channels of one position
// (channels_last). The host gives a group kLanes elements and loops over them innermost, so that the loop vectorises
// and the bookkeeping of windows is shared; on a GPU a group is one element and a thread owns it.
#pragma once

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/kernels/pool.h"

namespace mybackend::kernels::pool {

using device::Block;

constexpr int kLanes = device::kThreadedBlocks ? 1 : 16;
constexpr int64_t kGroupsPerBlock = 128;
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

// One group: `count` lanes; lane v is element `first + v` of an array of `sizes`.
struct Group {
  int64_t first;
  int count;
  int64_t plane;    // batch * channels + channel, or batch when the lanes are channels
  int64_t channel;  // of lane 0; 0 unless the lanes are channels
  int d, h, w;      // of lane 0

  MB_DEVICE Group(const PoolGeometry& g, const int64_t* sizes, int64_t index) {
    const int64_t area = sizes[1] * sizes[2];
    if (g.channels_last) {
      const int64_t groups = (g.channels + kLanes - 1) / kLanes;
      channel = index % groups * kLanes;
      int64_t position = index / groups;
      first = position * g.channels + channel;
      count = g.channels - channel < kLanes ? int(g.channels - channel) : kLanes;
      w = int(position % sizes[2]);
      position /= sizes[2];
      h = int(position % sizes[1]);
      position /= sizes[1];
      d = int(position % sizes[0]);
      plane = position / sizes[0];
    } else {
      const int64_t groups = (area + kLanes - 1) / kLanes;
      const int64_t begin = index % groups * kLanes;
      const int64_t slice = index / groups;
      channel = 0;
      first = slice * area + begin;
      count = area - begin < kLanes ? int(area - begin) : kLanes;
      h = int(begin / sizes[2]);
      w = int(begin % sizes[2]);
      d = int(slice % sizes[0]);
      plane = slice / sizes[0];
    }
  }
};

inline int64_t groups_of(const PoolGeometry& g, const int64_t* sizes) {
  if (g.channels_last) return g.batch * sizes[0] * sizes[1] * sizes[2] * device::ceil_div(g.channels, kLanes);
  return g.batch * g.channels * sizes[0] * device::ceil_div(sizes[1] * sizes[2], kLanes);
}

// The ranges of each lane in height and width; `range(g, dimension, position)` is window or covering.
struct LaneRanges {
  int h0[kLanes], h1[kLanes], w0[kLanes], w1[kLanes];
  int most_h = 0, most_w = 0;  // the longest of a lane

  template <class F>
  MB_DEVICE LaneRanges(const PoolGeometry& g, const int64_t* sizes, const Group& group, F range) {
    int h = group.h, w = group.w;
    Range rows = range(g, 1, h);
    for (int v = 0; v < group.count; v++) {
      const Range columns = range(g, 2, w);
      h0[v] = rows.begin;
      h1[v] = rows.end;
      w0[v] = columns.begin;
      w1[v] = columns.end;
      most_h = rows.end - rows.begin > most_h ? rows.end - rows.begin : most_h;
      most_w = columns.end - columns.begin > most_w ? columns.end - columns.begin : most_w;
      if (++w == int(sizes[2]) && v + 1 < group.count) {
        w = 0;
        rows = range(g, 1, ++h);
      }
    }
  }
};

// Runs f(group) for every group of an array of `sizes`; `terms` is about how many elements one result needs.
template <class K>
void launch_groups(device::Stream stream, const PoolGeometry& g, const int64_t* sizes, int64_t terms, const K& kernel) {
  const int64_t blocks = device::ceil_div(groups_of(g, sizes), kGroupsPerBlock);
  device::launch(stream, {blocks, kThreads, kGroupsPerBlock * kLanes * (terms < 1 ? 1 : terms)}, kernel);
}

template <class F>
MB_DEVICE void each_group(Block block, const PoolGeometry& g, const int64_t* sizes, int64_t total, F f) {
  const int64_t begin = block.index * kGroupsPerBlock;
  const int64_t left = total - begin;
  block.each(left < kGroupsPerBlock ? left : kGroupsPerBlock, [&](int64_t i) { f(Group(g, sizes, begin + i)); });
}

// About how many input elements an output looks at.
inline int64_t window_size(const PoolGeometry& g) {
  int64_t size = 1;
  for (int d = 0; d < 3; d++) size *= g.adaptive ? device::ceil_div(g.in[d], g.out[d] < 1 ? 1 : g.out[d]) : g.kernel[d];
  return size;
}

}  // namespace mybackend::kernels::pool
