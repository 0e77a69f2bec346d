// What cumulative operations are made of: scan_row and scan_columns, over what a Scan describes.
//
// An operation is a struct:
//   Input, Acc                  as in csrc/kernels/reduce.h
//   positions                   whether the accumulator's second member, a position, is a result of its own
//   chains                      whether a line may be cut into parts that are joined by their totals; then Fn combines
//   the
//                               accumulators' one member, and term and value only convert
//   identity(), combine(earlier, later), term(x, position), value(acc)
//   total(n, f)                 where `chains`: the accumulators f(0..n) combined
// Like folds (fold.h), scans come in a form for one thread and one for many.
#pragma once

#include "csrc/device/fold.h"
#include "csrc/device/scan_data.h"

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/scan_threads.h"
#else
#include "csrc/device/scan_host.h"
#endif
