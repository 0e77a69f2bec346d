// Entry points of compact.cu: what masks choose, in order.
//
// An array of `numel` contiguous elements is cut into chunks of kCompactChunk. `counts` has one int64 for each chunk
// and one more; after `count_nonzero_chunks` it holds how many elements before each chunk are not zero, and last the
// total.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

constexpr int64_t kCompactChunk = 4096;
constexpr int64_t compact_chunks(int64_t numel) {
  return (numel + kCompactChunk - 1) / kCompactChunk;
}

MB_DECLARE_KERNEL(count_nonzero_chunks,
                  void(Stream stream, const char* data, DType dtype, int64_t numel, int64_t* counts));

// out[k * stride] = position of the k-th element that is not zero; at most `most` are written.
MB_DECLARE_KERNEL(write_nonzero, void(Stream stream, const char* data, DType dtype, int64_t numel,
                                      const int64_t* counts, int64_t* out, int64_t stride, int64_t most));

struct Coordinates {
  const int64_t* positions;  // counted in row-major order of `sizes`
  int64_t count;
  int ndim;
  int64_t sizes[64];                  // outermost first
  int64_t* out;                       // (count, ndim)
  int64_t row_stride, column_stride;  // in elements
};
MB_DECLARE_KERNEL(write_coordinates, void(Stream stream, const Coordinates& coordinates));

// out[k * stride] = the k-th element of `data` whose mask is set.
MB_DECLARE_KERNEL(compact_masked, void(Stream stream, const char* data, DType dtype, const uint8_t* mask, int64_t numel,
                                       const int64_t* counts, char* out, int64_t stride));

// The k-th element of `data` whose mask is set = source[k].
MB_DECLARE_KERNEL(expand_masked, void(Stream stream, char* data, DType dtype, const uint8_t* mask, int64_t numel,
                                      const int64_t* counts, const char* source));

}  // namespace mybackend::kernels
