// Entry points of csrc/kernels/loss.cu: losses before their reduction, element by element.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// operands input, target
MB_DECLARE_KERNEL(mse, void(Stream stream, const Operands<3>& operands));
MB_DECLARE_KERNEL(smooth_l1, void(Stream stream, const Operands<3>& operands, double beta));
MB_DECLARE_KERNEL(huber, void(Stream stream, const Operands<3>& operands, double delta));

// operands input, target, grad; `scale` is what the reduction multiplies gradients by
MB_DECLARE_KERNEL(mse_backward, void(Stream stream, const Operands<4>& operands, double scale));
MB_DECLARE_KERNEL(smooth_l1_backward, void(Stream stream, const Operands<4>& operands, double scale, double beta));
MB_DECLARE_KERNEL(huber_backward, void(Stream stream, const Operands<4>& operands, double scale, double delta));

// operands input, target; input outside [0, 1] is reported to `errors` (kOutsideUnitInterval)
MB_DECLARE_KERNEL(binary_cross_entropy, void(Stream stream, const Operands<3>& operands, device::ErrorRecord* errors));
// operands grad, input, target
MB_DECLARE_KERNEL(binary_cross_entropy_backward, void(Stream stream, const Operands<4>& operands));

}  // namespace mybackend::kernels
