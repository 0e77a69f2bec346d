// each_row(): a loop over the elements of several rows, in which what is common to a row is worked out once per row on
// the host and once per element on a GPU (where a division is cheaper than idle threads).
#pragma once

#include "csrc/device/portable.h"

namespace mybackend::device {

// Calls body(context, column) for every column of every row, where context = prepare(row). Iterations are independent.
template <class P, class F>
MB_DEVICE void each_row(Block block, int64_t rows, int64_t columns, P prepare, F body) {
#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
  const int64_t n = rows * columns;
  if (n <= 0x7fffffff) {
    const uint32_t width = uint32_t(columns);
    for (uint32_t i = uint32_t(block.thread); i < uint32_t(n); i += uint32_t(block.threads)) {
      const uint32_t row = i / width;
      body(prepare(int64_t(row)), int64_t(i - row * width));
    }
  } else {
    for (int64_t i = block.thread; i < n; i += block.threads) body(prepare(i / columns), i % columns);
  }
#else
  for (int64_t row = 0; row < rows; row++) {
    const auto context = prepare(row);
    block.each(columns, [&](int64_t column) { body(context, column); });
  }
#endif
}

// The part of a (rows, columns) space that one block handles: short rows together, long rows in pieces.
struct RowSpan {
  int64_t first_row, rows;
  int64_t first_column, columns;
};

struct RowSplit {
  int64_t rows, columns;
  int64_t rows_per_block, columns_per_block, pieces;

  // About `elements` elements per block.
  static constexpr RowSplit of(int64_t rows, int64_t columns, int64_t elements) {
    RowSplit split{rows, columns, 1, columns, 1};
    if (columns > elements) {
      split.pieces = ceil_div(columns, elements);
      split.columns_per_block = ceil_div(columns, split.pieces);
    } else if (columns > 0) {
      split.rows_per_block = elements / columns;
    }
    return split;
  }

  int64_t blocks() const { return columns > 0 ? ceil_div(rows, rows_per_block) * pieces : 0; }
  int64_t elements_per_block() const { return rows_per_block * columns_per_block; }

  MB_DEVICE RowSpan span(int64_t block) const {
    RowSpan s;
    s.first_row = block / pieces * rows_per_block;
    s.rows = rows - s.first_row < rows_per_block ? rows - s.first_row : rows_per_block;
    s.first_column = block % pieces * columns_per_block;
    s.columns = columns - s.first_column < columns_per_block ? columns - s.first_column : columns_per_block;
    return s;
  }
};

}  // namespace mybackend::device
