// Entry point of csrc/kernels/renorm.cu.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// out = 1 where a norm is at most `largest`, else what scales it down to that.
MB_DECLARE_KERNEL(renorm_factor, void(Stream stream, const Operands<2>& operands, double largest));

}  // namespace mybackend::kernels
