// average_pool: out = (sum over the window) / divisor; the divisor is given, or the window's size, with or without the
// padding. average_pool_backward: an input element's gradient is the sum over the outputs whose window has it of their
// gradient / divisor, in the order of the outputs. Sums of half and bfloat16 are kept in float, except that one thread
// adds the gradients of adaptive windows, which hardly overlap, in place. Called by csrc/aten/pool*.cpp. Spec:
// test/ops/test_pool.py.
#include "csrc/kernels/pool_rows.h"

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

  // Of output (d, h, w); `plane` is along(d) * along(h).
  template <class A>
  MB_DEVICE A of(const PoolGeometry& g, int64_t plane, int w) const {
    return A(given != 0 ? given : plane * along(g, 2, w));
  }
};

// A window of nothing averages to zero.
template <class A>
MB_DEVICE A divide(A sum, A by) {
  return by == A(0) ? A(0) : A(sum / by);
}

template <class T>
struct AveragePool {
  using A = Compute<T>;
  PoolGeometry g;
  const T* in;
  T* out;
  Divisor divisor;

  MB_DEVICE void operator()(Block block) const { walk(block, g, g.out, *this); }

  MB_DEVICE int64_t plane_count(Row row) const {
    return int64_t(divisor.along(g, 0, row.d)) * divisor.along(g, 1, row.h);
  }

  MB_DEVICE void element(Row row, int w, int64_t channel) const {
    const Range depth = window(g, 0, row.d), rows = window(g, 1, row.h), columns = window(g, 2, w);
    const T* plane = in + plane_offset(g, g.in, row.plane, channel);
    A sum = A(0);
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++) {
        const T* x = plane + (d * g.in[1] + h) * g.in[2] * pitch(g);
        for (int c = columns.begin; c < columns.end; c++) sum += convert<A>(x[c * pitch(g)]);
      }
    const int64_t to =
        plane_offset(g, g.out, row.plane, channel) + ((row.d * g.out[1] + row.h) * g.out[2] + w) * pitch(g);
    out[to] = convert<T>(divide(sum, divisor.of<A>(g, plane_count(row), w)));
  }

  MB_DEVICE void row(Row row) const {
    if (g.channels_last) return row_of_channels(row);
    if (g.adaptive) {
      for (int w = 0; w < int(g.out[2]); w++) element(row, w, 0);
      return;
    }
    switch (g.stride[2]) {
      case 1:
        return row_of_columns<1>(row);
      case 2:
        return row_of_columns<2>(row);
      default:
        return row_of_columns<0>(row);
    }
  }

  // One tap of the window for all columns at once.
  template <int fixed_stride>
  MB_DEVICE void row_of_columns(Row row) const {
    const Range depth = window(g, 0, row.d), rows = window(g, 1, row.h);
    const T* plane = in + plane_offset(g, g.in, row.plane, 0);
    T* y = out + plane_offset(g, g.out, row.plane, 0) + (row.d * g.out[1] + row.h) * g.out[2];
    const int stride = fixed_stride != 0 ? fixed_stride : int(g.stride[2]);
    const int64_t count_of_plane = plane_count(row);
    A sum[kChunk];
    for (int begin = 0; begin < int(g.out[2]); begin += kChunk) {
      const int count = int(g.out[2]) - begin < kChunk ? int(g.out[2]) - begin : kChunk;
      for (int i = 0; i < count; i++) sum[i] = A(0);
      for (int d = depth.begin; d < depth.end; d++)
        for (int h = rows.begin; h < rows.end; h++)
          for (int k = 0; k < int(g.kernel[2]); k++) {
            const int offset = k - int(g.padding[2]);
            const Range inside = columns_that_meet(begin, begin + count, stride, offset, 0, int(g.in[2]));
            const T* x = plane + (d * g.in[1] + h) * g.in[2] + offset;
#pragma omp simd
            for (int o = inside.begin; o < inside.end; o++) sum[o - begin] += convert<A>(x[int64_t(o) * stride]);
          }
      for (int i = 0; i < count; i++)
        y[begin + i] = convert<T>(divide(sum[i], divisor.of<A>(g, count_of_plane, begin + i)));
    }
  }

  // One element of the window for all channels at once.
  MB_DEVICE void row_of_channels(Row row) const {
    const Range depth = window(g, 0, row.d), rows = window(g, 1, row.h);
    const T* plane = in + plane_offset(g, g.in, row.plane, 0);
    T* to = out + plane_offset(g, g.out, row.plane, 0) + (row.d * g.out[1] + row.h) * g.out[2] * g.channels;
    const int64_t count_of_plane = plane_count(row);
    A sum[kChunk];
    for (int w = 0; w < int(g.out[2]); w++) {
      const Range columns = window(g, 2, w);
      const A by = divisor.of<A>(g, count_of_plane, w);
      for (int64_t begin = 0; begin < g.channels; begin += kChunk) {
        const int count = int(g.channels - begin < kChunk ? g.channels - begin : kChunk);
        for (int i = 0; i < count; i++) sum[i] = A(0);
        for (int d = depth.begin; d < depth.end; d++)
          for (int h = rows.begin; h < rows.end; h++)
            for (int c = columns.begin; c < columns.end; c++) {
              const T* x = plane + ((d * g.in[1] + h) * g.in[2] + c) * g.channels + begin;
#pragma omp simd
              for (int i = 0; i < count; i++) sum[i] += convert<A>(x[i]);
            }
        T* y = to + w * g.channels + begin;
        for (int i = 0; i < count; i++) y[i] = convert<T>(divide(sum[i], by));
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

  MB_DEVICE void operator()(Block block) const { walk(block, g, g.in, *this); }

  MB_DEVICE void element(Row row, int w, int64_t channel) const {
    const Range depth = covering(g, 0, row.d), rows = covering(g, 1, row.h), columns = covering(g, 2, w);
    const T* plane = grad + plane_offset(g, g.out, row.plane, channel);
    A sum = A(0);
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++) {
        const T* x = plane + (d * g.out[1] + h) * g.out[2] * pitch(g);
        const int64_t count = int64_t(divisor.along(g, 0, d)) * divisor.along(g, 1, h);
        for (int c = columns.begin; c < columns.end; c++)
          sum += convert<A>(x[c * pitch(g)]) / divisor.of<A>(g, count, c);
      }
    const int64_t self = (row.d * g.in[1] + row.h) * g.in[2] + w;
    out[plane_offset(g, g.in, row.plane, channel) + self * pitch(g)] = convert<T>(sum);
  }

  MB_DEVICE void row(Row row) const {
    if (g.channels_last) return row_of_channels(row);
    if (g.kernel[2] > kChunk) {  // more outputs meet a chunk than `row_of_columns` keeps
      for (int w = 0; w < int(g.in[2]); w++) element(row, w, 0);
      return;
    }
    g.stride[2] == 1 ? row_of_columns<1>(row) : row_of_columns<0>(row);
  }

  // A row of outputs is divided once, then added tap by tap; adaptive pooling is AdaptiveScatter's.
  template <int fixed_stride>
  MB_DEVICE void row_of_columns(Row row) const {
    const Range depth = covering(g, 0, row.d), rows = covering(g, 1, row.h);
    const T* plane = grad + plane_offset(g, g.out, row.plane, 0);
    T* y = out + plane_offset(g, g.in, row.plane, 0) + (row.d * g.in[1] + row.h) * g.in[2];
    const int stride = fixed_stride != 0 ? fixed_stride : int(g.stride[2]);
    A sum[kChunk], share[2 * kChunk];
    for (int begin = 0; begin < int(g.in[2]); begin += kChunk) {
      const int count = int(g.in[2]) - begin < kChunk ? int(g.in[2]) - begin : kChunk;
      const Range outputs{covering(g, 2, begin).begin, covering(g, 2, begin + count - 1).end};
      for (int i = 0; i < count; i++) sum[i] = A(0);
      for (int d = depth.begin; d < depth.end; d++)
        for (int h = rows.begin; h < rows.end; h++) {
          const T* x = plane + (d * g.out[1] + h) * g.out[2];
          const int64_t count_of_plane = int64_t(divisor.along(g, 0, d)) * divisor.along(g, 1, h);
          for (int c = outputs.begin; c < outputs.end; c++)
            share[c - outputs.begin] = convert<A>(x[c]) / divisor.of<A>(g, count_of_plane, c);
          for (int k = 0; k < int(g.kernel[2]); k++) {
            const int offset = k - int(g.padding[2]);
            const Range o = columns_that_meet(outputs.begin, outputs.end, stride, offset, begin, begin + count);
            A* to = sum + (offset - begin);
#pragma GCC ivdep
            for (int c = o.begin; c < o.end; c++) to[c * stride] += share[c - outputs.begin];
          }
        }
      for (int i = 0; i < count; i++) y[begin + i] = convert<T>(sum[i]);
    }
  }

  MB_DEVICE void row_of_channels(Row row) const {
    const Range depth = covering(g, 0, row.d), rows = covering(g, 1, row.h);
    const T* plane = grad + plane_offset(g, g.out, row.plane, 0);
    T* to = out + plane_offset(g, g.in, row.plane, 0) + (row.d * g.in[1] + row.h) * g.in[2] * g.channels;
    A sum[kChunk];
    for (int w = 0; w < int(g.in[2]); w++) {
      const Range columns = covering(g, 2, w);
      for (int64_t begin = 0; begin < g.channels; begin += kChunk) {
        const int count = int(g.channels - begin < kChunk ? g.channels - begin : kChunk);
        for (int i = 0; i < count; i++) sum[i] = A(0);
        for (int d = depth.begin; d < depth.end; d++)
          for (int h = rows.begin; h < rows.end; h++) {
            const int64_t count_of_plane = int64_t(divisor.along(g, 0, d)) * divisor.along(g, 1, h);
            for (int c = columns.begin; c < columns.end; c++) {
              const T* x = plane + ((d * g.out[1] + h) * g.out[2] + c) * g.channels + begin;
              const A by = divisor.of<A>(g, count_of_plane, c);
#pragma omp simd
              for (int i = 0; i < count; i++) sum[i] += convert<A>(x[i]) / by;
            }
          }
        T* y = to + w * g.channels + begin;
        for (int i = 0; i < count; i++) y[i] = convert<T>(sum[i]);
      }
    }
  }
};

// Contiguous planes of adaptive pooling, one a block of one thread: each output adds to its window.
template <class T>
struct AdaptiveScatter {
  using A = Compute<T>;
  PoolGeometry g;
  const T* grad;
  T* out;

  MB_DEVICE void operator()(Block block) const {
    const int64_t in_size = g.in[0] * g.in[1] * g.in[2];
    const T* x = grad + block.index * g.out[0] * g.out[1] * g.out[2];
    T* plane = out + block.index * in_size;
    for (int64_t i = 0; i < in_size; i++) plane[i] = T(0);
    for (int od = 0; od < int(g.out[0]); od++)
      for (int oh = 0; oh < int(g.out[1]); oh++)
        for (int ow = 0; ow < int(g.out[2]); ow++) {
          const Range depth = window(g, 0, od), rows = window(g, 1, oh), columns = window(g, 2, ow);
          const A size = A(int64_t(depth.end - depth.begin) * (rows.end - rows.begin) * (columns.end - columns.begin));
          const A share = convert<A>(*x++) / size;
          for (int d = depth.begin; d < depth.end; d++)
            for (int h = rows.begin; h < rows.end; h++) {
              T* y = plane + (d * g.in[1] + h) * g.in[2];
              for (int w = columns.begin; w < columns.end; w++) y[w] = convert<T>(convert<A>(y[w]) + share);
            }
        }
  }
};

}  // namespace

MB_DEFINE_KERNEL(average_pool, (Stream stream, const AveragePoolArgs& args)) {
  visit<Join<Floats, Halves, Types<int64_t>>>(args.dtype, "avg_pool", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_rows(stream, g, g.out, window_size(g),
                AveragePool<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out),
                               Divisor{args.count_include_pad, args.divisor}});
  });
}

MB_DEFINE_KERNEL(average_pool_backward, (Stream stream, const AveragePoolArgs& args)) {
  visit<Join<Floats, Halves>>(args.dtype, "avg_pool_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    const T* grad = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    if (!device::kThreadedBlocks && g.adaptive && !g.channels_last) {
      const int64_t in_size = g.in[0] * g.in[1] * g.in[2];
      device::launch(stream, {g.batch * g.channels, 1, 2 * in_size}, AdaptiveScatter<T>{g, grad, out});
    } else {
      launch_rows(stream, g, g.in, 4,
                  AveragePoolBackward<T>{g, grad, out, Divisor{args.count_include_pad, args.divisor}});
    }
  });
}

}  // namespace mybackend::kernels
