// Entry points of csrc/kernels/range.cu: arrays computed from the position alone.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// out[i] = start + i * step; start and step are operands.immediate of a scalar of the output's compute type.
MB_DECLARE_KERNEL(arange, void(Stream stream, const Operands<3>& out_start_step));
// out[i] = start + i * step in the first half, end - (steps - 1 - i) * step in the second: exact at both ends.
MB_DECLARE_KERNEL(linspace, void(Stream stream, const Operands<3>& out_start_end, int64_t steps));

}  // namespace mybackend::kernels
