// Entry point of csrc/kernels/assertion.cu.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// Reports kAssertion with `message` unless the one element of operand 1 is non-zero. Operand 0 is not written.
MB_DECLARE_KERNEL(assert_nonzero,
                  void(Stream stream, const Operands<2>& operands, device::ErrorRecord* errors, int64_t message));

}  // namespace mybackend::kernels
