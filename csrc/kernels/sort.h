// Entry points of sort.cu, topk.cu and search.cu.
//
// Rows are contiguous. Sorts are stable in both directions; NaN counts as greater than every number.
#pragma once

#include <algorithm>

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

struct SortRows {
  const char* in;
  DType dtype;
  int64_t rows, columns;
  bool descending;
  char* values;      // (rows, keep), not `in`
  int64_t* indices;  // (rows, keep)
  int64_t keep;      // topk: how many of each row; sort: columns
  bool sorted;       // topk: false leaves the kept ones in the order of their indices
  char* scratch;     // sort_scratch_bytes
};

// Blocks share out the rows, and each has room to sort one.
constexpr int64_t sort_blocks(int64_t rows, int64_t columns) {
  return std::min(rows,
                  std::max<int64_t>(16, std::min<int64_t>(1024, (int64_t(1) << 24) / std::max<int64_t>(1, columns))));
}
constexpr int64_t sort_scratch_bytes(int64_t rows, int64_t columns) {
  return sort_blocks(rows, columns) * columns * 2 * (int64_t(sizeof(uint64_t)) + int64_t(sizeof(uint32_t)));
}

MB_DECLARE_KERNEL(sort_rows, void(Stream stream, const SortRows& rows));
MB_DECLARE_KERNEL(topk_rows, void(Stream stream, const SortRows& rows));

struct Search {
  const char* boundaries;  // (rows or 1, columns), sorted along the columns, by `sorter` where there is one
  const int64_t* sorter;
  int64_t columns;
  bool shared;  // one row of boundaries for all values
  const char* values;
  DType dtype;             // of both
  int64_t numel, per_row;  // values in all, and for each row of boundaries
  bool right;
  char* out;
  bool narrow;  // int32 results
};
MB_DECLARE_KERNEL(search_sorted, void(Stream stream, const Search& search));

// out[p] = how many of `ends` (ascending) are at most p: the row that position p belongs to. `narrow`: out is int32.
MB_DECLARE_KERNEL(owner_of_positions,
                  void(Stream stream, const int64_t* ends, int64_t count, char* out, bool narrow, int64_t numel));

// out = whether the element is among `tests`, or is not if `invert`.
MB_DECLARE_KERNEL(is_in, void(Stream stream, const char* elements, const char* tests, DType dtype, int64_t numel,
                              int64_t test_count, bool invert, bool* out));

}  // namespace mybackend::kernels
