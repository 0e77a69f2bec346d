// Entry points of csrc/kernels/cumulative*.cu: operations whose i-th result is over elements 0 to i of a line.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/scan_data.h"

namespace mybackend::kernels {
using device::Stream;

MB_DECLARE_KERNEL(cumulative_sum, void(Stream stream, const Scan& s, const Workspace& workspace));
MB_DECLARE_KERNEL(cumulative_prod, void(Stream stream, const Scan& s, const Workspace& workspace));
MB_DECLARE_KERNEL(cumulative_logsumexp, void(Stream stream, const Scan& s, const Workspace& workspace));

// Values and positions; of equal elements the last is named, and a NaN wins from where it stands.
MB_DECLARE_KERNEL(cumulative_max, void(Stream stream, const Scan& s, const Workspace& workspace));
MB_DECLARE_KERNEL(cumulative_min, void(Stream stream, const Scan& s, const Workspace& workspace));

}  // namespace mybackend::kernels
