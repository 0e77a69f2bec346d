// Entry points of csrc/kernels/copy.cu: copies between any strides and dtypes of one device, and fills.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// out = convert(in); `conjugate` and `negate` resolve the lazy bits of `in`.
MB_DECLARE_KERNEL(copy, void(Stream stream, const Operands<2>& operands, bool conjugate, bool negate));

// out = the scalar `operands.immediate[1]`.
MB_DECLARE_KERNEL(fill, void(Stream stream, const Operands<2>& operands));

}  // namespace mybackend::kernels
