// What cumulative operations are made of: Scan describes one, scan_row and scan_columns run it.
//
// An operation is a struct:
//   Input, Acc                  as in csrc/kernels/reduce.h
//   positions                   whether the accumulator's second member, a position, is a result of its own
//   chains                      whether a line may be cut into parts and runs that are joined by their totals
//   identity(), combine(earlier, later), term(x, position), value(acc)
//   total(n, f)                 where `chains`: the accumulators f(0..n) combined
// Like folds (fold.h), scans come in a form for one thread and one for many.
#pragma once

#include "csrc/device/fold.h"

namespace mybackend {

// `lines` lines of n elements each. Strides are in bytes; a line is one element of the kept dimensions.
struct Scan {
  DType in_dtype;
  DType out_dtype[2];
  const char* in;
  char* out[2];  // values and, or null, positions; may be the input itself
  int64_t n, lines;
  int64_t in_stride, out_stride[2];
  int kept;
  int64_t kept_size[kMaxDims], kept_stride[kMaxDims], kept_out_stride[2][kMaxDims];
};

}  // namespace mybackend

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/scan_threads.h"
#else
#include "csrc/device/scan_host.h"
#endif
