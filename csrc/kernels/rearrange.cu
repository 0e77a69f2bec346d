// Elements moved as opaque words: cat, tril/triu, masked_fill.
// Called by csrc/aten/cat.cpp, csrc/aten/triangle.cpp, csrc/aten/masked.cpp. Spec: test/ops/test_rearrange.py.
#include "csrc/kernels/rearrange.h"

#include "csrc/device/rows.h"
#include "csrc/device/tile.h"
#include "csrc/kernels/index_walk.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::RowSplit;

constexpr int kThreads = 128;

// A block copies some rows, or a part of a row, of one piece.
template <class W>
struct CatPieces {
  Pieces p;
  int64_t first_block[kMaxPieces + 1];
  static constexpr int64_t kWords = 16384 / sizeof(W) > 2048 ? 2048 : 16384 / sizeof(W);

  static constexpr int64_t kSize = sizeof(W);

  MB_DEVICE RowSplit split(int k) const { return RowSplit::of(p.rows, p.width[k] / kSize, kWords); }

  MB_DEVICE void operator()(Block block) const {
    int k = 0;
    for (int reach = kMaxPieces / 2; reach > 0; reach /= 2)
      if (k + reach < p.count && first_block[k + reach] <= block.index) k += reach;
    const device::RowSpan span = split(k).span(block.index - first_block[k]);
    struct Row {
      W* to;
      const W* from;
    };
    device::each_row(
        block, span.rows, span.columns,
        [&](int64_t row) {
          row += span.first_row;
          return Row{reinterpret_cast<W*>(p.out + row * p.row_bytes + p.begin[k]) + span.first_column,
                     reinterpret_cast<const W*>(p.data[k] + row * p.width[k]) + span.first_column};
        },
        [](const Row& row, int64_t c) { row.to[c] = row.from[c]; });
  }
};

template <class W>
void cat(Stream stream, const Pieces& p) {
  CatPieces<W> kernel{p, {}};
  int64_t blocks = 0;
  for (int k = 0; k < p.count; k++) {
    kernel.first_block[k] = blocks;
    blocks += kernel.split(k).blocks();
  }
  device::launch(stream, {blocks, kThreads, CatPieces<W>::kWords}, kernel);
}

template <class W, bool kUpper, bool kDense>
struct Triangle {
  Operands<2> o;
  int64_t diagonal;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    struct Row {
      char* to;
      const char* from;
      int64_t edge;  // the first column above, or the last column below, in columns of this piece
    };
    device::each_row(
        block, span.rows, span.columns,
        [&](int64_t r) {
          int64_t row = span.first_row + r;
          Row place{o.data[0] + span.first_column * o.strides[0][0], o.data[1] + span.first_column * o.strides[1][0],
                    0};
          for (int d = 1; d < o.ndim; d++) {
            const int64_t i = d == o.ndim - 1 ? row : row % o.sizes[d];
            if (d == 1) place.edge = i + diagonal - span.first_column;
            row /= o.sizes[d];
            place.to += i * o.strides[0][d];
            place.from += i * o.strides[1][d];
          }
          return place;
        },
        [&](const Row& row, int64_t c) {
          const bool keep = kUpper ? c >= row.edge : c <= row.edge;
          const int64_t to_stride = kDense ? int64_t(sizeof(W)) : o.strides[0][0];
          const int64_t from_stride = kDense ? int64_t(sizeof(W)) : o.strides[1][0];
          const W value = *reinterpret_cast<const W*>(row.from + c * from_stride);
          *reinterpret_cast<W*>(row.to + c * to_stride) = keep ? value : W{};
        });
  }
};

template <class W>
void triangle_of(Stream stream, const Operands<2>& o, bool upper, int64_t diagonal) {
  const RowSplit split = RowSplit::of(o.sizes[0] > 0 ? o.numel / o.sizes[0] : 0, o.sizes[0], 2048);
  const device::Grid grid{split.blocks(), kThreads, split.elements_per_block()};
  const bool dense = o.strides[0][0] == int64_t(sizeof(W)) && o.strides[1][0] == int64_t(sizeof(W));
  if (upper && dense)
    device::launch(stream, grid, Triangle<W, true, true>{o, diagonal, split});
  else if (upper)
    device::launch(stream, grid, Triangle<W, true, false>{o, diagonal, split});
  else if (dense)
    device::launch(stream, grid, Triangle<W, false, true>{o, diagonal, split});
  else
    device::launch(stream, grid, Triangle<W, false, false>{o, diagonal, split});
}

struct Select {
  template <class T>
  MB_DEVICE T operator()(T in, bool mask, T value) const {
    return mask ? value : in;
  }
};

template <class W>
void select(Stream stream, Operands<4> o) {
  o.dtype[0] = o.dtype[1] = o.dtype[3] = dtype_of<W>;
  device::pointwise<W, W, bool, W>(stream, o, Select{});
}

}  // namespace

MB_DEFINE_KERNEL(cat_pieces, (Stream stream, const Pieces& p)) {
  uintptr_t bits = reinterpret_cast<uintptr_t>(p.out) | uintptr_t(p.row_bytes);
  for (int k = 0; k < p.count; k++)
    bits |= reinterpret_cast<uintptr_t>(p.data[k]) | uintptr_t(p.begin[k]) | uintptr_t(p.width[k]);
  if (bits % 16 == 0) return cat<Word16>(stream, p);
  if (bits % 8 == 0) return cat<uint64_t>(stream, p);
  if (bits % 4 == 0) return cat<uint32_t>(stream, p);
  if (bits % 2 == 0) return cat<uint16_t>(stream, p);
  cat<uint8_t>(stream, p);
}

MB_DEFINE_KERNEL(triangle, (Stream stream, const Operands<2>& o, bool upper, int64_t diagonal)) {
  switch (size_of(o.dtype[0])) {
    case 1:
      return triangle_of<uint8_t>(stream, o, upper, diagonal);
    case 2:
      return triangle_of<uint16_t>(stream, o, upper, diagonal);
    case 4:
      return triangle_of<uint32_t>(stream, o, upper, diagonal);
    case 8:
      return triangle_of<uint64_t>(stream, o, upper, diagonal);
    default:
      return triangle_of<Word16>(stream, o, upper, diagonal);
  }
}

MB_DEFINE_KERNEL(select_by_mask, (Stream stream, const Operands<4>& o)) {
  switch (size_of(o.dtype[0])) {
    case 1:
      return select<uint8_t>(stream, o);
    case 2:
      return select<uint16_t>(stream, o);
    case 4:
      return select<uint32_t>(stream, o);
    case 8:
      return select<uint64_t>(stream, o);
    default:
      return select<complex<double>>(stream, o);
  }
}

}  // namespace mybackend::kernels
