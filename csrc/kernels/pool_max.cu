// max_pool: out = max over the window, and where it is; the first of equals, and NaN wins. Nothing is compared with the
// padding. max_pool_backward: an input element's gradient is the sum over the outputs whose maximum it is. Where a
// block has many threads each element looks for its outputs, so the result does not depend on their order; where it has
// one, a plane is cleared and each output adds to its maximum. Called by csrc/aten/pool*.cpp. Spec:
// test/ops/test_pool.py.
#include <limits>

#include "csrc/kernels/pool_rows.h"

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

  MB_DEVICE void operator()(Block block) const { walk(block, g, g.out, *this); }

  MB_DEVICE int64_t position(int d, int h, int w) const { return (d * g.in[1] + h) * g.in[2] + w; }

  MB_DEVICE void element(Row row, int w, int64_t channel) const {
    const Range depth = window(g, 0, row.d), rows = window(g, 1, row.h), columns = window(g, 2, w);
    const T* x = in + plane_offset(g, g.in, row.plane, channel);
    A best = lowest<A>();
    int64_t where = position(depth.begin, rows.begin, columns.begin);
    for (int d = depth.begin; d < depth.end; d += int(g.dilation[0]))
      for (int h = rows.begin; h < rows.end; h += int(g.dilation[1]))
        for (int c = columns.begin; c < columns.end; c += int(g.dilation[2])) {
          const int64_t at = position(d, h, c);
          const A value = convert<A>(x[at * pitch(g)]);
          const bool better = (value > best) | (value != value);
          best = better ? value : best;
          where = better ? at : where;
        }
    const int64_t to =
        plane_offset(g, g.out, row.plane, channel) + ((row.d * g.out[1] + row.h) * g.out[2] + w) * pitch(g);
    out[to] = convert<T>(best);
    indices[to] = where;
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
    const int64_t to = plane_offset(g, g.out, row.plane, 0) + (row.d * g.out[1] + row.h) * g.out[2];
    const int stride = fixed_stride != 0 ? fixed_stride : int(g.stride[2]);
    A best[kChunk];
    int64_t where[kChunk];
    for (int begin = 0; begin < int(g.out[2]); begin += kChunk) {
      const int count = int(g.out[2]) - begin < kChunk ? int(g.out[2]) - begin : kChunk;
      for (int i = 0; i < count; i++) {
        best[i] = lowest<A>();
        where[i] = position(depth.begin, rows.begin, window(g, 2, begin + i).begin);
      }
      for (int d = depth.begin; d < depth.end; d += int(g.dilation[0]))
        for (int h = rows.begin; h < rows.end; h += int(g.dilation[1])) {
          const int64_t at = position(d, h, 0);
          for (int k = 0; k < int(g.kernel[2]); k++) {
            const int offset = k * int(g.dilation[2]) - int(g.padding[2]);
            const Range inside = columns_that_meet(begin, begin + count, stride, offset, 0, int(g.in[2]));
            const T* x = plane + at + offset;
#pragma omp simd
            for (int o = inside.begin; o < inside.end; o++) {
              const A value = convert<A>(x[int64_t(o) * stride]);
              const bool better = (value > best[o - begin]) | (value != value);
              best[o - begin] = better ? value : best[o - begin];
              where[o - begin] = better ? at + offset + int64_t(o) * stride : where[o - begin];
            }
          }
        }
      for (int i = 0; i < count; i++) {
        out[to + begin + i] = convert<T>(best[i]);
        indices[to + begin + i] = where[i];
      }
    }
  }

  // One element of the window for all channels at once.
  MB_DEVICE void row_of_channels(Row row) const {
    const Range depth = window(g, 0, row.d), rows = window(g, 1, row.h);
    const T* plane = in + plane_offset(g, g.in, row.plane, 0);
    const int64_t to = plane_offset(g, g.out, row.plane, 0) + (row.d * g.out[1] + row.h) * g.out[2] * g.channels;
    A best[kChunk];
    int64_t where[kChunk];
    for (int w = 0; w < int(g.out[2]); w++) {
      const Range columns = window(g, 2, w);
      for (int64_t begin = 0; begin < g.channels; begin += kChunk) {
        const int count = int(g.channels - begin < kChunk ? g.channels - begin : kChunk);
        for (int i = 0; i < count; i++) {
          best[i] = lowest<A>();
          where[i] = position(depth.begin, rows.begin, columns.begin);
        }
        for (int d = depth.begin; d < depth.end; d += int(g.dilation[0]))
          for (int h = rows.begin; h < rows.end; h += int(g.dilation[1]))
            for (int c = columns.begin; c < columns.end; c += int(g.dilation[2])) {
              const int64_t at = position(d, h, c);
              const T* x = plane + at * g.channels + begin;
#pragma omp simd
              for (int i = 0; i < count; i++) {
                const A value = convert<A>(x[i]);
                const bool better = (value > best[i]) | (value != value);
                best[i] = better ? value : best[i];
                where[i] = better ? at : where[i];
              }
            }
        T* y = out + to + w * g.channels + begin;
        int64_t* z = indices + to + w * g.channels + begin;
        for (int i = 0; i < count; i++) {
          y[i] = convert<T>(best[i]);
          z[i] = where[i];
        }
      }
    }
  }
};

// Each input element looks for the outputs whose maximum it is.
template <class T>
struct MaxPoolBackward {
  using A = Compute<T>;
  PoolGeometry g;
  const T* grad;
  T* out;
  const int64_t* indices;

  MB_DEVICE void operator()(Block block) const { walk(block, g, g.in, *this); }

  MB_DEVICE void element(Row row, int w, int64_t channel) const {
    const Range depth = covering(g, 0, row.d), rows = covering(g, 1, row.h), columns = covering(g, 2, w);
    const int64_t from = plane_offset(g, g.out, row.plane, channel);
    const int64_t self = (row.d * g.in[1] + row.h) * g.in[2] + w;
    A sum = A(0);
    for (int d = depth.begin; d < depth.end; d++)
      for (int h = rows.begin; h < rows.end; h++)
        for (int c = columns.begin; c < columns.end; c++) {
          const int64_t at = from + ((d * g.out[1] + h) * g.out[2] + c) * pitch(g);
          sum += indices[at] == self ? convert<A>(grad[at]) : A(0);
        }
    out[plane_offset(g, g.in, row.plane, channel) + self * pitch(g)] = convert<T>(sum);
  }

  // Channels last; contiguous planes of one thread are MaxPoolScatter's.
  MB_DEVICE void row(Row row) const {
    const Range depth = covering(g, 0, row.d), rows = covering(g, 1, row.h);
    const int64_t from = plane_offset(g, g.out, row.plane, 0), to = plane_offset(g, g.in, row.plane, 0);
    A sum[kChunk];
    for (int w = 0; w < int(g.in[2]); w++) {
      const Range columns = covering(g, 2, w);
      const int64_t self = (row.d * g.in[1] + row.h) * g.in[2] + w;
      for (int64_t begin = 0; begin < g.channels; begin += kChunk) {
        const int count = int(g.channels - begin < kChunk ? g.channels - begin : kChunk);
        for (int i = 0; i < count; i++) sum[i] = A(0);
        for (int d = depth.begin; d < depth.end; d++)
          for (int h = rows.begin; h < rows.end; h++)
            for (int c = columns.begin; c < columns.end; c++) {
              const int64_t at = from + ((d * g.out[1] + h) * g.out[2] + c) * g.channels + begin;
              const T* x = grad + at;
              const int64_t* z = indices + at;
#pragma omp simd
              for (int i = 0; i < count; i++) sum[i] += z[i] == self ? convert<A>(x[i]) : A(0);
            }
        T* y = out + to + self * g.channels + begin;
        for (int i = 0; i < count; i++) y[i] = convert<T>(sum[i]);
      }
    }
  }
};

// Contiguous planes, one a block of one thread. An index outside of the plane adds nothing.
template <class T>
struct MaxPoolScatter {
  using A = Compute<T>;
  int64_t in_size, out_size;  // of a plane
  const T* grad;
  T* out;
  const int64_t* indices;

  MB_DEVICE void operator()(Block block) const {
    const T* x = grad + block.index * out_size;
    const int64_t* where = indices + block.index * out_size;
    T* y = out + block.index * in_size;
    for (int64_t i = 0; i < in_size; i++) y[i] = T(0);
    for (int64_t o = 0; o < out_size; o++) {
      const int64_t at = where[o];
      if (uint64_t(at) < uint64_t(in_size)) y[at] = convert<T>(convert<A>(y[at]) + convert<A>(x[o]));
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(max_pool, (Stream stream, const MaxPoolArgs& args)) {
  visit<Join<Floats, Halves, Integers>>(args.dtype, "max_pool", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    launch_rows(stream, g, g.out, window_size(g),
                MaxPool<T>{g, static_cast<const T*>(args.in), static_cast<T*>(args.out), args.indices});
  });
}

MB_DEFINE_KERNEL(max_pool_backward, (Stream stream, const MaxPoolArgs& args)) {
  visit<Join<Floats, Halves>>(args.dtype, "max_pool_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    const PoolGeometry& g = args.geometry;
    const T* grad = static_cast<const T*>(args.in);
    T* out = static_cast<T*>(args.out);
    if (!device::kThreadedBlocks && !g.channels_last) {
      const int64_t in_size = g.in[0] * g.in[1] * g.in[2], out_size = g.out[0] * g.out[1] * g.out[2];
      device::launch(stream, {g.batch * g.channels, 1, in_size + out_size},
                     MaxPoolScatter<T>{in_size, out_size, grad, out, args.indices});
    } else {
      launch_rows(stream, g, g.in, 4, MaxPoolBackward<T>{g, grad, out, args.indices});
    }
  });
}

}  // namespace mybackend::kernels
