// An entry point as csrc/kernels has them, for the test of kernel libraries.
#pragma once

#include "csrc/device/kernel.h"

namespace test {

struct SampleArgs {
  const float* in;
  float* out;
  int64_t n;
};

MB_DECLARE_KERNEL(sample, void(mybackend::device::Stream, const SampleArgs&));
MB_DECLARE_KERNEL(sample_absent, void(mybackend::device::Stream, const SampleArgs&));

}  // namespace test
