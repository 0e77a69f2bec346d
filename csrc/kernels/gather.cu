// gather_elements: to = from[index], as opaque words. Serves index, index_select, gather and take.
//
// The walked space is (rows, columns) with dimension 0 as columns. A block owns some rows or a piece of one. Where no
// index varies along dimension 0 the indices are read once per row and the row is copied. Called by
// csrc/aten/index.cpp, csrc/aten/scatter_gather.cpp. Spec: test/ops/test_index.py.
#include "csrc/device/rows.h"
#include "csrc/kernels/index_walk.h"

namespace mybackend::kernels {
namespace {

using device::RowSplit;

constexpr int kThreads = 128;
constexpr int64_t kElements = 2048;

// Indices vary along the columns.
template <class W, class I, int N>
struct GatherEach {
  IndexOperands o;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    auto place_of = [&](int64_t row) {
      auto place = Place<N>::origin(o);
      place.follow(o, 1, o.ndim, span.first_row + row);
      place.step(o, 0, span.first_column);
      return place;
    };
    if constexpr (!device::kThreadedBlocks) {
      for (int64_t row = 0; row < span.rows; row++) {
        const auto place = place_of(row);
        if (place.template all_inside<I>(block, o, 0, span.columns))
          unchecked(block, place, span.columns);
        else
          block.each(span.columns, [&](int64_t c) { checked(place, c); });
      }
    } else {
      device::each_row(block, span.rows, span.columns, place_of,
                       [&](const Place<N>& place, int64_t c) { checked(place, c); });
    }
  }

  MB_DEVICE void checked(const Place<N>& place, int64_t c) const {
    int64_t offset;
    if (place.template resolve<I>(o, 0, c, offset))
      *reinterpret_cast<W*>(place.to + c * o.to_strides[0]) =
          *reinterpret_cast<const W*>(place.from + c * o.from_strides[0] + offset);
  }

  MB_DEVICE void unchecked(Block block, const Place<N>& place, int64_t columns) const {
    char* to = place.to;
    const char* from = place.from;
    const int64_t to_stride = o.to_strides[0], from_stride = o.from_strides[0];
    if (to_stride == int64_t(sizeof(W)))
      place.template each_inside<I, true>(block, o, 0, columns, [=](int64_t c, int64_t offset) {
        reinterpret_cast<W*>(to)[c] = *reinterpret_cast<const W*>(from + c * from_stride + offset);
      });
    else
      place.template each_inside<I, true>(block, o, 0, columns, [=](int64_t c, int64_t offset) {
        *reinterpret_cast<W*>(to + c * to_stride) = *reinterpret_cast<const W*>(from + c * from_stride + offset);
      });
  }
};

// Indices are the same for all columns of a row; kDense: both rows lie element after element.
template <class W, class I, int N, bool kDense>
struct GatherRows {
  IndexOperands o;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    struct Row {
      char* to;
      const char* from;  // nullptr: an index was out of range
    };
    device::each_row(
        block, span.rows, span.columns,
        [&](int64_t row) {
          auto place = Place<N>::origin(o);
          place.follow(o, 1, o.ndim, span.first_row + row);
          int64_t offset;
          const bool inside = place.template resolve<I>(o, 0, 0, offset);
          place.step(o, 0, span.first_column);
          return Row{place.to, inside ? place.from + offset : nullptr};
        },
        [&](const Row& row, int64_t c) {
          if (row.from == nullptr) return;
          const int64_t to_stride = kDense ? int64_t(sizeof(W)) : o.to_strides[0];
          const int64_t from_stride = kDense ? int64_t(sizeof(W)) : o.from_strides[0];
          *reinterpret_cast<W*>(row.to + c * to_stride) = *reinterpret_cast<const W*>(row.from + c * from_stride);
        });
  }
};

// A dense row seen as wider words, where every address allows it.
bool widen(IndexOperands& o, int64_t size, int64_t wider) {
  if (o.sizes[0] * size % wider != 0) return false;
  auto aligned = [&](const void* p) { return reinterpret_cast<uintptr_t>(p) % uintptr_t(wider) == 0; };
  bool fits = aligned(o.to) && aligned(o.from);
  for (int d = 1; d < o.ndim; d++) fits = fits && o.to_strides[d] % wider == 0 && o.from_strides[d] % wider == 0;
  for (int k = 0; k < o.count; k++) fits = fits && o.indexed_strides[k] % wider == 0;
  if (!fits) return false;
  o.sizes[0] = o.sizes[0] * size / wider;
  o.to_strides[0] = o.from_strides[0] = wider;
  return true;
}

template <class W>
void run(Stream stream, IndexOperands o) {
  bool by_row = true;
  for (int k = 0; k < o.count; k++) by_row = by_row && o.index_strides[k][0] == 0;
  const bool dense = by_row && o.to_strides[0] == int64_t(sizeof(W)) && o.from_strides[0] == int64_t(sizeof(W));
  const bool wide = dense && sizeof(W) < sizeof(Word16) && widen(o, sizeof(W), sizeof(Word16));
  int64_t rows = 1;
  for (int d = 1; d < o.ndim; d++) rows *= o.sizes[d];
  const RowSplit split = RowSplit::of(rows, o.sizes[0], wide ? kElements / 2 : kElements);
  const device::Grid grid{split.blocks(), kThreads, split.elements_per_block()};
  with_indices(o, [&](auto index, auto count) {
    using I = typename decltype(index)::type;
    constexpr int N = decltype(count)::value;
    if (wide)
      device::launch(stream, grid, GatherRows<Word16, I, N, true>{o, split});
    else if (dense)
      device::launch(stream, grid, GatherRows<W, I, N, true>{o, split});
    else if (by_row)
      device::launch(stream, grid, GatherRows<W, I, N, false>{o, split});
    else
      device::launch(stream, grid, GatherEach<W, I, N>{o, split});
  });
}

}  // namespace

MB_DEFINE_KERNEL(gather_elements, (Stream stream, const IndexOperands& o)) {
  switch (size_of(o.dtype)) {
    case 1:
      return run<uint8_t>(stream, o);
    case 2:
      return run<uint16_t>(stream, o);
    case 4:
      return run<uint32_t>(stream, o);
    case 8:
      return run<uint64_t>(stream, o);
    default:
      return run<Word16>(stream, o);
  }
}

}  // namespace mybackend::kernels
