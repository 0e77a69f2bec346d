// max_pool: out = max over the window, and where it is; the first of equals, and NaN wins. Nothing is compared with the
// padding. max_pool_backward: an input element's gradient is the sum over the outputs whose maximum it is, so the
// result does not depend on the order of threads and nothing has to be cleared first. Called by csrc/aten/pool*.cpp.
// Spec: test/ops/test_pool.py.
#include <limits>

#include "csrc/kernels/pool_lanes.h"

namespace mybackend::kernels {
namespace {

using namespace pool;

template <class T>
constexpr T lowest() {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

template <class T>
struct MaxPool {
  using A = Compute<T>;
  PoolGeometry g;
  const T* in;
  T* out;
  int64_t* indices;
  int64_t total;

  MB_DEVICE void operator()(Block block) const {
    each_group(block, g, g.out, total,
               [&](const Group& group) { g.channels_last ? channels(group) : positions(group); });
  }

  // Lanes are channels: one window for all.
  MB_DEVICE void channels(const Group& group) const {
    const Range depth = window(g, 0, group.d), rows = window(g, 1, group.h), columns = window(g, 2, group.w);
    A best[kLanes];
    int64_t where[kLanes];
    const int64_t start = (depth.begin * g.in[1] + rows.begin) * g.in[2] + columns.begin;
    for (int v = 0; v < kLanes; v++) {
      best[v] = lowest<A>();
      where[v] = start;
    }
    const T* image = in + group.plane * g.in[0] * g.in[1] * g.in[2] * g.channels + group.channel;
    for (int d = depth.begin; d < depth.end; d += int(g.dilation[0]))
      for (int h = rows.begin; h < rows.end; h += int(g.dilation[1]))
        for (int w = columns.begin; w < columns.end; w += int(g.dilation[2])) {
          const int64_t at = (d * g.in[1] + h) * g.in[2] + w;
          const T* x = image + at * g.channels;
          if (group.count == kLanes)
            take<kLanes>(kLanes, x, at, best, where);
          else
            take<0>(group.count, x, at, best, where);
        }
    for (int v = 0; v < group.count; v++) {
      out[group.first + v] = convert<T>(best[v]);
      indices[group.first + v] = where[v];
    }
  }

  template <int fixed>
  MB_DEVICE static void take(int count, const T* x, int64_t at, A* best, int64_t* where) {
    const int n = fixed != 0 ? fixed : count;
#pragma omp simd
    for (int v = 0; v < n; v++) {
      const A value = convert<A>(x[v]);
      const bool better = (value > best[v]) | (value != value);
      best[v] = better ? value : best[v];
      where[v] = better ? at : where[v];
    }
  }

  // Lanes are positions: each has its window.
  MB_DEVICE void positions(const Group& group) const {
    const Range depth = window(g, 0, group.d);
    const LaneRanges lane(g, g.out, group, window);
    A best[kLanes];
    int64_t where[kLanes];
    for (int v = 0; v < group.count; v++) {
      best[v] = lowest<A>();
      where[v] = (depth.begin * g.in[1] + lane.h0[v]) * g.in[2] + lane.w0[v];
    }
    const T* image = in + group.plane * g.in[0] * g.in[1] * g.in[2];
    const int width = int(g.in[2]), row_step = int(g.dilation[1]), column_step = int(g.dilation[2]);
    for (int d = depth.begin; d < depth.end; d += int(g.dilation[0])) {
      const int64_t slice = d * g.in[1] * g.in[2];
      const T* x = image + slice;
      for (int h = 0; h < lane.most_h; h += row_step)
        for (int w = 0; w < lane.most_w; w += column_step) {
#pragma omp simd
          for (int v = 0; v < group.count; v++) {
            const bool inside = (lane.h0[v] + h < lane.h1[v]) & (lane.w0[v] + w < lane.w1[v]);
            const int64_t at = inside ? int64_t(lane.h0[v] + h) * width + lane.w0[v] + w : 0;
            const A value = convert<A>(x[at]);
            const bool better = inside & ((value > best[v]) | (value != value));
            best[v] = better ? value : best[v];
            where[v] = better ? slice + at : where[v];
          }
        }
    }
    for (int v = 0; v < group.count; v++) {
      out[group.first + v] = convert<T>(best[v]);
      indices[group.first + v] = where[v];
    }
  }
};

template <class T>
struct MaxPoolBackward {
  using A = Compute<T>;
  PoolGeometry g;
  const T* grad;
  T* out;
  const int64_t* indices;
  int64_t total;

  MB_DEVICE void operator()(Block block) const {
    each_group(block, g, g.in, total,
               [&](const Group& group) { g.channels_last ? channels(group) : positions(group); });
  }

  MB_DEVICE void channels(const Group& group) const {
    const Range depth = covering(g, 0, group.d), rows = covering(g, 1, group.h), columns = covering(g, 2, group.w);
    const int64_t self = (group.d * g.in[1] + group.h) * g.in[2] + group.w;
    A sum[kLanes];
    for (int v = 0; v < kLanes; v++) sum[v] = A(0);
    const int64_t image = group.plane * g.out[0] * g.out[1] * g.out[2];
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++)
        for (int w = columns.begin; w < columns.end; w++) {
          const int64_t at = (image + (d * g.out[1] + h) * g.out[2] + w) * g.channels + group.channel;
#pragma omp simd
          for (int v = 0; v < group.count; v++) sum[v] += indices[at + v] == self ? convert<A>(grad[at + v]) : A(0);
        }
    for (int v = 0; v < group.count; v++) out[group.first + v] = convert<T>(sum[v]);
  }

  MB_DEVICE void positions(const Group& group) const {
    const Range depth = covering(g, 0, group.d);
    const LaneRanges lane(g, g.in, group, covering);
    const int64_t plane_size = g.in[0] * g.in[1] * g.in[2];
    const int64_t self = group.first - group.plane * plane_size;
    A sum[kLanes];
    for (int v = 0; v < kLanes; v++) sum[v] = A(0);
    const int width = int(g.out[2]);
    for (int d = depth.begin; d < depth.end; d++) {
      const int64_t slice = (group.plane * g.out[0] + d) * g.out[1] * g.out[2];
      const T* x = grad + slice;
      const int64_t* where = indices + slice;
      for (int h = 0; h < lane.most_h; h++)
        for (int w = 0; w < lane.most_w; w++) {
#pragma omp simd
          for (int v = 0; v < group.count; v++) {
            const bool inside = (lane.h0[v] + h < lane.h1[v]) & (lane.w0[v] + w < lane.w1[v]);
            const int64_t at = inside ? int64_t(lane.h0[v] + h) * width + lane.w0[v] + w : 0;
            const bool mine = inside & (where[at] == self + v);
            sum[v] += mine ? convert<A>(x[at]) : A(0);
          }
        }
    }
    for (int v = 0; v < group.count; v++) out[group.first + v] = convert<T>(sum[v]);
  }
};

}  // namespace

MB_DEFINE_KERNEL(max_pool, (Stream stream, const MaxPoolArgs& args)) {
  visit<Join<Floats, Halves, Integers>>(args.dtype, "max_pool", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_groups(
        stream, g, g.out, window_size(g),
        MaxPool<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out), args.indices, groups_of(g, g.out)});
  });
}

MB_DEFINE_KERNEL(max_pool_backward, (Stream stream, const MaxPoolArgs& args)) {
  visit<Join<Floats, Halves>>(args.dtype, "max_pool_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_groups(stream, g, g.in, 4,
                  MaxPoolBackward<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out), args.indices,
                                     groups_of(g, g.in)});
  });
}

}  // namespace mybackend::kernels
