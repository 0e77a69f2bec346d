// Entry points of csrc/kernels/softmax.cu. Arrays are contiguous and seen as outer x dim x inner.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

struct SoftmaxShape {
  int64_t outer, dim, inner;
};

// out = softmax(in) or log_softmax(in) along `dim`; `out_dtype` is `in_dtype`, or float for a half input.
MB_DECLARE_KERNEL(softmax, void(Stream stream, void* out, const void* in, SoftmaxShape shape, DType out_dtype,
                                DType in_dtype, bool log));

// The gradient of the input from that of the result `out`; `dtype` is that of `grad` and `out`.
MB_DECLARE_KERNEL(softmax_backward, void(Stream stream, void* grad_in, const void* grad, const void* out,
                                         SoftmaxShape shape, DType grad_in_dtype, DType dtype, bool log));

}  // namespace mybackend::kernels
