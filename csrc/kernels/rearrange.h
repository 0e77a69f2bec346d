// Entry points of rearrange.cu: cat, tril/triu, masked_fill.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// Pieces laid side by side in the rows of `out`: out[row][begin .. begin + width) = piece[row], all in bytes.
constexpr int kMaxPieces = 64;
struct Pieces {
  int count;
  const char* data[kMaxPieces];
  int64_t begin[kMaxPieces];
  int64_t width[kMaxPieces];
  int64_t rows;
  char* out;
  int64_t row_bytes;
};
MB_DECLARE_KERNEL(cat_pieces, void(Stream stream, const Pieces& pieces));

// out = in where the column is at most (lower) or at least (upper) row + diagonal, else 0. Operands: dimension 0 is the
// column, dimension 1 the row.
MB_DECLARE_KERNEL(triangle, void(Stream stream, const Operands<2>& operands, bool upper, int64_t diagonal));

// out = mask ? value : in. Operands: out, in, mask (bool), value; all but the mask of one dtype.
MB_DECLARE_KERNEL(select_by_mask, void(Stream stream, const Operands<4>& operands));

}  // namespace mybackend::kernels
