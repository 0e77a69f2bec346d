// Entry points of segment_reduce.cu: reductions over consecutive pieces of an axis.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

enum class SegmentOp : int { Max, Mean, Min, Sum, Prod };

// Data is (outer, length, inner), contiguous; segment s of row o is [offsets[o, s], offsets[o, s + 1]). Results are
// (outer, segments, inner). Without an initial value a reduction starts from its identity, and the mean of nothing is
// NaN.
struct SegmentReduce {
  DType dtype;
  SegmentOp op;
  int64_t outer, length, inner, segments;
  bool has_initial;
  double initial;
  const int64_t* offsets;  // (outer, segments + 1)
  const void* data;
};
MB_DECLARE_KERNEL(segment_reduce, void(Stream stream, const SegmentReduce& args, void* out));
// Writes the elements of `grad_in` (like data) that are in a segment, no others.
MB_DECLARE_KERNEL(segment_reduce_backward,
                  void(Stream stream, const SegmentReduce& args, const void* out, const void* grad, void* grad_in));

}  // namespace mybackend::kernels
