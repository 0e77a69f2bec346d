// resample_axis, resample_plane: every interpolation, forward and backward, as a band matrix applied along an axis; the
// matrix is made by the caller. Sums are in the compute type, in the order of the taps. resample_copy: nearest
// neighbours of several axes at once, moved as bytes. Called by csrc/aten/upsample.cpp. Spec:
// test/ops/test_resample.py.
#include "csrc/kernels/resample.h"

#include <cstring>

#include "csrc/device/numeric.h"
#include "csrc/device/rows.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::RowSplit;

constexpr int kThreads = 128;
constexpr int64_t kElements = 2048;

// Calls f(integral_constant<int, T>) for a common number of taps, which loops over taps are unrolled for; T is 0 for
// others.
template <class F>
MB_DEVICE void with_taps(int64_t width, F f) {
  switch (width) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 4:
      return f(std::integral_constant<int, 4>{});
    case 8:
      return f(std::integral_constant<int, 8>{});
    default:
      return f(std::integral_constant<int, 0>{});
  }
}

// Columns [first, first + columns) of `rows` rows, resampled along the row.
template <class C, class In, class Out>
MB_DEVICE void resample_columns(Block block, const Taps& x, const In* in, Out* out, int64_t out_stride, int64_t rows,
                                int64_t first, int64_t columns) {
  struct Row {
    const In* in;
    Out* out;
  };
  const C* weights = reinterpret_cast<const C*>(x.weight) + first;
  const int32_t *start = x.start + first, *count = x.count + first;
  const int64_t in_stride = x.in_size, out_size = x.out_size;
  auto row_of = [&](int64_t row) { return Row{in + row * in_stride, out + row * out_stride}; };
  // Columns with fewer taps than the others, at the borders.
  auto ragged = [&](int64_t begin, int64_t end) {
    device::each_row(
        block, rows, end - begin, [&](int64_t row) { return row_of(row); },
        [&](const Row& row, int64_t column) {
          const int64_t c = begin + column;
          C sum = C(0);
          for (int32_t t = 0; t < count[c]; t++) sum += weights[t * out_size + c] * C(row.in[start[c] + t]);
          row.out[c] = convert<Out>(sum);
        });
  };
  const int64_t begin = x.full_begin > first ? (x.full_begin - first < columns ? x.full_begin - first : columns) : 0;
  const int64_t end =
      x.full_end - first < columns ? (x.full_end - first > begin ? x.full_end - first : begin) : columns;
  with_taps(x.width, [&](auto taps) {
    constexpr int T = decltype(taps)::value;
    if constexpr (T == 0) {
      ragged(0, columns);
    } else {
      if (begin > 0) ragged(0, begin);
      device::each_row(
          block, rows, end - begin, [&](int64_t row) { return row_of(row); },
          [=](const Row& row, int64_t column) {
            const int64_t c = begin + column;
            const In* taken = row.in + start[c];
            C sum = weights[c] * C(taken[0]);
            for (int t = 1; t < T; t++) sum += weights[t * out_size + c] * C(taken[t]);
            row.out[c] = convert<Out>(sum);
          });
      if (end < columns) ragged(end, columns);
    }
  });
}

// One output of a column: `weight` is that of the first tap.
template <int T, class C, class In>
MB_DEVICE C weighted(const C* weight, int64_t weight_stride, const In* in, int64_t stride, int32_t count) {
  if (T > 0 && count == T) {
    C sum = weight[0] * C(in[0]);
    for (int t = 1; t < T; t++) sum += weight[t * weight_stride] * C(in[t * stride]);
    return sum;
  }
  C sum = C(0);
  for (int32_t t = 0; t < count; t++) sum += weight[t * weight_stride] * C(in[t * stride]);
  return sum;
}

// Rows are outputs along the axis, columns what is inside it.
template <class In, class Out>
struct ResampleRows {
  using C = Compute<In>;
  Resample r;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    struct Row {
      Out* out;
      const In* in;
      const C* weight;
      int32_t count;
    };
    const Taps& y = r.axis;
    with_taps(y.width, [&](auto taps) {
      const int64_t inner = r.inner, out_size = y.out_size;
      device::each_row(
          block, span.rows, span.columns,
          [&](int64_t i) {
            const int64_t row = span.first_row + i, a = row / out_size, o = row % out_size;
            return Row{reinterpret_cast<Out*>(r.out) + row * inner + span.first_column,
                       reinterpret_cast<const In*>(r.in) + (a * y.in_size + y.start[o]) * inner + span.first_column,
                       reinterpret_cast<const C*>(y.weight) + o, y.count[o]};
          },
          [=](const Row& row, int64_t c) {
            row.out[c] =
                convert<Out>(weighted<decltype(taps)::value>(row.weight, out_size, row.in + c, inner, row.count));
          });
    });
  }
};

// Nothing inside the axis: columns are outputs.
template <class In, class Out>
struct ResampleColumns {
  Resample r;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    const int64_t first = span.first_row;
    resample_columns<Compute<In>>(block, r.axis, reinterpret_cast<const In*>(r.in) + first * r.axis.in_size,
                                  reinterpret_cast<Out*>(r.out) + first * r.axis.out_size + span.first_column,
                                  r.axis.out_size, span.rows, span.first_column, span.columns);
  }
};

template <class In, class Out>
struct ResamplePlanes {
  using C = Compute<In>;
  ResamplePlane r;
  int64_t bands, pieces;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, C, across, kPlaneTile);
    const int64_t first_column = block.index % pieces * r.columns;
    const int64_t band = block.index / pieces % bands, plane = block.index / pieces / bands;
    const int64_t columns = r.x.out_size - first_column < r.columns ? r.x.out_size - first_column : r.columns;
    const int64_t first_row = band * r.band;
    const int64_t rows = r.y.out_size - first_row < r.band ? r.y.out_size - first_row : r.band;
    const int64_t first = r.first[band];
    const In* in = reinterpret_cast<const In*>(r.in) + (plane * r.y.in_size + first) * r.x.in_size;
    C* held = across;
    resample_columns<C>(block, r.x, in, held, columns, r.last[band] - first, first_column, columns);
    block.sync();
    struct Row {
      Out* out;
      const C* in;
      const C* weight;
      int32_t count;
    };
    Out* out = reinterpret_cast<Out*>(r.out) + (plane * r.y.out_size + first_row) * r.x.out_size + first_column;
    with_taps(r.y.width, [&](auto taps) {
      const int64_t out_size = r.y.out_size;
      device::each_row(
          block, rows, columns,
          [&](int64_t i) {
            const int64_t o = first_row + i;
            return Row{out + i * r.x.out_size, held + (r.y.start[o] - first) * columns,
                       reinterpret_cast<const C*>(r.y.weight) + o, r.y.count[o]};
          },
          [=](const Row& row, int64_t c) {
            row.out[c] =
                convert<Out>(weighted<decltype(taps)::value>(row.weight, out_size, row.in + c, columns, row.count));
          });
    });
  }
};

template <class In, class Out>
void resample(Stream stream, const Resample& r) {
  if (r.inner == 1) {
    const RowSplit split = RowSplit::of(r.outer, r.axis.out_size, kElements);
    return device::launch(stream, {split.blocks(), kThreads, split.elements_per_block() * 2},
                          ResampleColumns<In, Out>{r, split});
  }
  const RowSplit split = RowSplit::of(r.outer * r.axis.out_size, r.inner, kElements);
  device::launch(stream, {split.blocks(), kThreads, split.elements_per_block() * 2}, ResampleRows<In, Out>{r, split});
}

template <class In, class Out>
void resample(Stream stream, const ResamplePlane& r) {
  const int64_t bands = device::ceil_div(r.y.out_size, r.band), pieces = device::ceil_div(r.x.out_size, r.columns);
  device::launch(stream, {r.planes * bands * pieces, kThreads, r.band * r.columns * 2},
                 ResamplePlanes<In, Out>{r, bands, pieces});
}

// Of the types that both arrays are stored in.
template <class R>
void resample_stored(Stream stream, const R& r) {
  if (r.in_dtype == r.out_dtype)
    return visit<Join<Floats, Halves>>(r.in_dtype, "upsample", [&](auto type) {
      using T = typename decltype(type)::type;
      resample<T, T>(stream, r);
    });
  if (r.out_dtype == DType::Float)
    return visit<Halves>(r.in_dtype, "upsample",
                         [&](auto type) { resample<typename decltype(type)::type, float>(stream, r); });
  visit<Halves>(r.out_dtype, "upsample", [&](auto type) { resample<float, typename decltype(type)::type>(stream, r); });
}

template <class W>
struct CopyRows {
  ResampleCopy r;
  RowSplit split;

  struct Row {
    W* out;
    const W* in;
  };

  MB_DEVICE Row row_of(int64_t row) const {
    const int64_t plane = row / r.out_rows, o = row - plane * r.out_rows;
    const int64_t from = plane * r.in_rows + (r.row == nullptr ? o : int64_t(r.row[o]));
    return {reinterpret_cast<W*>(r.out) + row * r.out_columns, reinterpret_cast<const W*>(r.in) + from * r.in_columns};
  }

  template <int Repeat>
  MB_DEVICE static void repeated(Block block, const Row& row, int64_t n) {
    W* out = row.out;
    const W* in = row.in;
    block.each(n, [=](int64_t i) {
      for (int k = 0; k < Repeat; k++) out[i * Repeat + k] = in[i];
    });
  }

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    if constexpr (!device::kThreadedBlocks) {  // whole rows; one that repeats the row before it is copied from there
      if (span.columns == r.out_columns) {
        Row before{nullptr, nullptr};
        for (int64_t i = 0; i < span.rows; i++) {
          const Row row = row_of(span.first_row + i);
          if (row.in == before.in)
            memcpy(row.out, before.out, size_t(r.out_columns) * sizeof(W));
          else
            whole_row(block, row);
          before = row;
        }
        return;
      }
    }
    device::each_row(
        block, span.rows, span.columns, [&](int64_t i) { return row_of(span.first_row + i); },
        [&](const Row& row, int64_t i) {
          const int64_t c = span.first_column + i;
          row.out[c] = row.in[r.column == nullptr ? c / r.repeat : int64_t(r.column[c])];
        });
  }

  MB_DEVICE void whole_row(Block block, const Row& row) const {
    if (r.column == nullptr && r.repeat == 1)
      memcpy(row.out, row.in, size_t(r.out_columns) * sizeof(W));
    else if (r.column == nullptr && r.repeat == 2)
      repeated<2>(block, row, r.in_columns);
    else if (r.column == nullptr && r.repeat == 4)
      repeated<4>(block, row, r.in_columns);
    else if (r.column == nullptr)
      block.each(r.out_columns, [&](int64_t c) { row.out[c] = row.in[c / r.repeat]; });
    else
      block.each(r.out_columns, [&](int64_t c) { row.out[c] = row.in[r.column[c]]; });
  }
};

template <class W>
void copy_rows(Stream stream, const ResampleCopy& r) {
  const RowSplit split = RowSplit::of(r.planes * r.out_rows, r.out_columns, 4 * kElements);
  device::launch(stream, {split.blocks(), kThreads, split.elements_per_block()}, CopyRows<W>{r, split});
}

}  // namespace

MB_DEFINE_KERNEL(resample_axis, (Stream stream, const Resample& r)) {
  resample_stored(stream, r);
}

MB_DEFINE_KERNEL(resample_copy, (Stream stream, const ResampleCopy& r)) {
  switch (r.size) {
    case 1:
      return copy_rows<uint8_t>(stream, r);
    case 2:
      return copy_rows<uint16_t>(stream, r);
    case 4:
      return copy_rows<uint32_t>(stream, r);
    default:
      return copy_rows<uint64_t>(stream, r);
  }
}

MB_DEFINE_KERNEL(resample_plane, (Stream stream, const ResamplePlane& r)) {
  resample_stored(stream, r);
}

}  // namespace mybackend::kernels
