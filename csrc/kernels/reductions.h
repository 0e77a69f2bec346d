// Entry points of csrc/kernels/reduce_*.cu: reductions over any dimensions of one array.
//
// `in` is stored in the type the result is computed from (ATen has cast it); results are converted as they are stored.
// A reduction of no elements is the caller's to fill.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/reduction.h"

namespace mybackend::kernels {
using device::Stream;

MB_DECLARE_KERNEL(reduce_sum, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_nansum, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_mean, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_prod, void(Stream stream, const Reduction& r, const Workspace& workspace));

// The vector norm of order p, or with `power_sum` the sum of |x|^p alone. The output is real.
MB_DECLARE_KERNEL(reduce_norm,
                  void(Stream stream, const Reduction& r, const Workspace& workspace, double p, bool power_sum));

// Whether all (any) elements differ from zero; the output is bool or uint8.
MB_DECLARE_KERNEL(reduce_all, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_any, void(Stream stream, const Reduction& r, const Workspace& workspace));
// How many elements differ from zero; the output is int64.
MB_DECLARE_KERNEL(reduce_count_nonzero, void(Stream stream, const Reduction& r, const Workspace& workspace));

// Largest and smallest values; a NaN wins. aminmax writes the smallest to output 0 and the largest to output 1.
MB_DECLARE_KERNEL(reduce_max, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_min, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_aminmax, void(Stream stream, const Reduction& r, const Workspace& workspace));

// The value that wins (a null output 0 leaves it out) and its first position in output 1; a NaN wins.
MB_DECLARE_KERNEL(reduce_max_index, void(Stream stream, const Reduction& r, const Workspace& workspace));
MB_DECLARE_KERNEL(reduce_min_index, void(Stream stream, const Reduction& r, const Workspace& workspace));

// Output 0: the sum of squared deviations from the mean over count - correction, or its square root. Output 1, which
// may be null: the mean.
MB_DECLARE_KERNEL(reduce_variance, void(Stream stream, const Reduction& r, const Workspace& workspace,
                                        double correction, bool take_root));

// The exclusive or of the elements' bits, each read as an unsigned 64-bit integer.
MB_DECLARE_KERNEL(reduce_xor, void(Stream stream, const Reduction& r, const Workspace& workspace));

}  // namespace mybackend::kernels
