// average_pool: out = (sum over the window) / divisor; the divisor is given, or the window's size, with or without the
// padding. average_pool_backward: an input element's gradient is the sum over the outputs whose window has it of their
// gradient / divisor, whatever the order of threads. Sums of half and bfloat16 are kept in float.
// Called by csrc/aten/pool*.cpp. Spec: test/ops/test_pool.py.
#include "csrc/kernels/pool_lanes.h"

namespace mybackend::kernels {
namespace {

using namespace pool;

struct Divisor {
  bool count_include_pad;
  int64_t given;

  // How many positions of dimension `d` count for output position `o`.
  MB_DEVICE int along(const PoolGeometry& g, int d, int o) const {
    if (g.adaptive || !count_include_pad) {
      const Range range = window(g, d, o);
      return range.end - range.begin;
    }
    const int begin = o * int(g.stride[d]) - int(g.padding[d]);
    const int end = begin + int(g.kernel[d]), limit = int(g.in[d] + g.padding[d]);
    return (end < limit ? end : limit) - begin;
  }
};

template <class T>
struct AveragePool {
  using A = Compute<T>;
  PoolGeometry g;
  const T* in;
  T* out;
  Divisor divisor;
  int64_t total;

  MB_DEVICE void operator()(Block block) const {
    each_group(block, g, g.out, total,
               [&](const Group& group) { g.channels_last ? channels(group) : positions(group); });
  }

  MB_DEVICE void channels(const Group& group) const {
    const Range depth = window(g, 0, group.d), rows = window(g, 1, group.h), columns = window(g, 2, group.w);
    A sum[kLanes];
    for (int v = 0; v < kLanes; v++) sum[v] = A(0);
    const T* image = in + group.plane * g.in[0] * g.in[1] * g.in[2] * g.channels + group.channel;
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++)
        for (int w = columns.begin; w < columns.end; w++) {
          const T* x = image + ((d * g.in[1] + h) * g.in[2] + w) * g.channels;
#pragma omp simd
          for (int v = 0; v < group.count; v++) sum[v] += convert<A>(x[v]);
        }
    const A by = A(divisor.given != 0 ? divisor.given
                                      : int64_t(divisor.along(g, 0, group.d)) * divisor.along(g, 1, group.h) *
                                            divisor.along(g, 2, group.w));
    for (int v = 0; v < group.count; v++) out[group.first + v] = convert<T>(by == A(0) ? A(0) : sum[v] / by);
  }

  MB_DEVICE void positions(const Group& group) const {
    const Range depth = window(g, 0, group.d);
    const LaneRanges lane(g, g.out, group, window);
    A sum[kLanes];
    for (int v = 0; v < kLanes; v++) sum[v] = A(0);
    const T* image = in + group.plane * g.in[0] * g.in[1] * g.in[2];
    const int width = int(g.in[2]);
    for (int d = depth.begin; d < depth.end; d++) {
      const T* x = image + d * g.in[1] * g.in[2];
      for (int h = 0; h < lane.most_h; h++)
        for (int w = 0; w < lane.most_w; w++) {
#pragma omp simd
          for (int v = 0; v < group.count; v++) {
            const bool inside = (lane.h0[v] + h < lane.h1[v]) & (lane.w0[v] + w < lane.w1[v]);
            const int64_t at = inside ? int64_t(lane.h0[v] + h) * width + lane.w0[v] + w : 0;
            const A value = convert<A>(x[at]);
            sum[v] += inside ? value : A(0);
          }
        }
    }
    store(group, sum);
  }

  MB_DEVICE void store(const Group& group, const A* sum) const {
    const int64_t deep = divisor.along(g, 0, group.d);
    int h = group.h, w = group.w;
    for (int v = 0; v < group.count; v++) {
      const int64_t by = divisor.given != 0 ? divisor.given : deep * divisor.along(g, 1, h) * divisor.along(g, 2, w);
      out[group.first + v] = convert<T>(by == 0 ? A(0) : sum[v] / A(by));  // a window of nothing: zero
      if (++w == int(g.out[2])) {
        w = 0;
        h++;
      }
    }
  }
};

template <class T>
struct AveragePoolBackward {
  using A = Compute<T>;
  PoolGeometry g;
  const T* grad;
  T* out;
  Divisor divisor;
  int64_t total;

  MB_DEVICE void operator()(Block block) const {
    each_group(block, g, g.in, total,
               [&](const Group& group) { g.channels_last ? channels(group) : positions(group); });
  }

  MB_DEVICE A by(int64_t deep, int64_t high, int w) const {
    return A(divisor.given != 0 ? divisor.given : deep * high * divisor.along(g, 2, w));
  }

  MB_DEVICE void channels(const Group& group) const {
    const Range depth = covering(g, 0, group.d), rows = covering(g, 1, group.h), columns = covering(g, 2, group.w);
    A sum[kLanes];
    for (int v = 0; v < kLanes; v++) sum[v] = A(0);
    const int64_t image = group.plane * g.out[0] * g.out[1] * g.out[2];
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++)
        for (int w = columns.begin; w < columns.end; w++) {
          const T* x = grad + (image + (d * g.out[1] + h) * g.out[2] + w) * g.channels + group.channel;
          const A divided = by(divisor.along(g, 0, d), divisor.along(g, 1, h), w);
#pragma omp simd
          for (int v = 0; v < group.count; v++) sum[v] += convert<A>(x[v]) / divided;
        }
    for (int v = 0; v < group.count; v++) out[group.first + v] = convert<T>(sum[v]);
  }

  MB_DEVICE void positions(const Group& group) const {
    const Range depth = covering(g, 0, group.d);
    int h = group.h, w = group.w;
    for (int v = 0; v < group.count; v++) {
      const Range rows = covering(g, 1, h), columns = covering(g, 2, w);
      A sum = A(0);
      for (int d = depth.begin; d < depth.end; d++) {
        const int64_t deep = divisor.along(g, 0, d);
        for (int oh = rows.begin; oh < rows.end; oh++) {
          const T* x = grad + ((group.plane * g.out[0] + d) * g.out[1] + oh) * g.out[2];
          const int64_t high = divisor.along(g, 1, oh);
          for (int ow = columns.begin; ow < columns.end; ow++) sum += convert<A>(x[ow]) / by(deep, high, ow);
        }
      }
      out[group.first + v] = convert<T>(sum);
      if (++w == int(g.in[2])) {
        w = 0;
        h++;
      }
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(average_pool, (Stream stream, const AveragePoolArgs& args)) {
  visit<Join<Floats, Halves, Types<int64_t>>>(args.dtype, "avg_pool", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_groups(stream, g, g.out, window_size(g),
                  AveragePool<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out),
                                 Divisor{args.count_include_pad, args.divisor}, groups_of(g, g.out)});
  });
}

MB_DEFINE_KERNEL(average_pool_backward, (Stream stream, const AveragePoolArgs& args)) {
  visit<Join<Floats, Halves>>(args.dtype, "avg_pool_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_groups(stream, g, g.in, 4,
                  AveragePoolBackward<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out),
                                         Divisor{args.count_include_pad, args.divisor}, groups_of(g, g.in)});
  });
}

}  // namespace mybackend::kernels
