// Entry points of resample.cu: interpolation along one axis, and pads that repeat what is inside.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// out[a][o][b] = sum over t < count[o] of weight[o * width + t] * in[a][start[o] + t][b]. Weights have the type that
// arithmetic on `in_dtype` is done in; either array may be stored as the other's compute type.
struct Resample {
  const char* in;
  char* out;
  DType in_dtype, out_dtype;
  int64_t outer, in_size, out_size, inner;
  const int32_t* start;
  const int32_t* count;
  const char* weight;
  int64_t width;
};
MB_DECLARE_KERNEL(resample_axis, void(Stream stream, const Resample& resample));

// The last `dims` dimensions of contiguous (planes, in) become (planes, out); `before` elements are added (or, negative,
// cut off) at the beginning of each. Sizes are innermost first.
struct Pad {
  const char* in;   // backward: the gradient of the output
  char* out;        // backward: the gradient of the input
  DType dtype;
  int64_t planes;
  int64_t in_size[3], out_size[3], before[3];  // of the forward; unused dimensions are 1, 1, 0
  bool reflect;     // else the border is repeated
};
MB_DECLARE_KERNEL(pad_inside, void(Stream stream, const Pad& pad));
MB_DECLARE_KERNEL(pad_inside_backward, void(Stream stream, const Pad& pad));

}  // namespace mybackend::kernels
