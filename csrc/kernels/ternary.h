// Entry points of csrc/kernels/{ternary,where,clamp}.cu.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// condition ? x : y; operands condition, x, y, the last two stored as the output is.
MB_DECLARE_KERNEL(where, void(Stream stream, const Operands<4>& operands));

// x + value * y * z, and x + value * y / z.
MB_DECLARE_KERNEL(addcmul, void(Stream stream, const Operands<4>& operands, const Number& value));
MB_DECLARE_KERNEL(addcdiv, void(Stream stream, const Operands<4>& operands, const Number& value));

// x + weight * (y - x).
MB_DECLARE_KERNEL(lerp_tensor_weight, void(Stream stream, const Operands<4>& operands));
MB_DECLARE_KERNEL(lerp_scalar_weight, void(Stream stream, const Operands<3>& operands, const Number& weight));

// min(max(x, low), high); NaN wins.
MB_DECLARE_KERNEL(clamp, void(Stream stream, const Operands<4>& operands));
MB_DECLARE_KERNEL(clamp_scalar,
                  void(Stream stream, const Operands<2>& operands, const Number& low, const Number& high));
MB_DECLARE_KERNEL(clamp_min_scalar, void(Stream stream, const Operands<2>& operands, const Number& low));
MB_DECLARE_KERNEL(clamp_max_scalar, void(Stream stream, const Operands<2>& operands, const Number& high));

}  // namespace mybackend::kernels
