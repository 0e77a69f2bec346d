// cat: inputs that lie as the result does are copied by rows, many in one launch; anything else (another dtype, other
// strides) is copied into its slice. narrow_copy, into a given tensor, is its opposite.
//
// Seen along the memory of the result every input is a block of (rows, width) bytes, where rows are the dimensions
// outside `dim` and a width holds `dim` and what is inside it.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <c10/core/WrapDimMinimal.h>

#include "csrc/aten/structured.h"
#include "csrc/kernels/rearrange.h"
#include "csrc/runtime/stream.h"
#include "generated/rearrange.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

bool skipped(const Tensor& t) {
  return t.dim() == 1 && t.size(0) == 0;
}

}  // namespace

MB_IMPL_FUNC(cat_out)
(const at::ITensorListRef& tensors, int64_t dim, int64_t /*valid*/, bool /*all_contiguous*/, bool /*all_same_dtype*/,
 bool /*all_same_sizes_and_stride*/, at::MemoryFormat format, const Tensor& result) {
  if (result.numel() == 0) return;
  const int64_t size = result.element_size();
  const bool dense = result.is_contiguous(format);
  int64_t inside = size, rows = 1;
  for (int64_t d = 0; d < result.dim(); d++) {
    if (d == dim) continue;
    const bool inner = result.stride(d) < result.stride(dim) || (result.stride(d) == result.stride(dim) && d > dim);
    (inner ? inside : rows) *= result.size(d);
  }
  kernels::Pieces pieces;
  pieces.count = 0;
  pieces.rows = rows;
  pieces.out = static_cast<char*>(result.mutable_data_ptr());
  pieces.row_bytes = inside * result.size(dim);
  const device::Stream stream = runtime::current_stream(result.device().index());
  auto flush = [&] {
    if (pieces.count > 0) kernels::cat_pieces(stream, pieces);
    pieces.count = 0;
  };
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) continue;
    const int64_t length = t.size(dim);
    if (t.numel() > 0) {
      const bool plain = dense && t.scalar_type() == result.scalar_type() && t.is_contiguous(format) &&
                         t.is_conj() == result.is_conj() && t.is_neg() == result.is_neg();
      if (plain) {
        pieces.data[pieces.count] = static_cast<const char*>(t.const_data_ptr());
        pieces.begin[pieces.count] = begin * inside;
        pieces.width[pieces.count] = length * inside;
        if (++pieces.count == kernels::kMaxPieces) flush();
      } else {
        result.narrow(dim, begin, length).copy_(t);
      }
    }
    begin += length;
  }
  flush();
}

Tensor& narrow_copy_out(const Tensor& self, int64_t dim, int64_t start, int64_t length, Tensor& out) {
  const Tensor part = self.narrow(dim, start, length);
  at::native::resize_output(out, part.sizes());
  return out.copy_(part);
}

}  // namespace mybackend::aten
