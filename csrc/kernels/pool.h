// Entry points of csrc/kernels/pool_max.cu and pool_average.cu: pooling over windows of up to three dimensions.
//
// A pooling of fewer dimensions has leading ones of size 1. Arrays are dense, either contiguous (batch, channels,
// depth, height, width) or channels_last (batch, depth, height, width, channels). The window of output position o along
// one dimension is
//   o * stride - padding + k * dilation  for k in [0, kernel), cut to the input          ordinary pooling
//   [floor(o * in / out), ceil((o + 1) * in / out))                                      adaptive pooling
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

struct PoolGeometry {
  int64_t batch, channels;
  int64_t in[3], out[3];  // depth, height, width; each below 2^31
  int64_t kernel[3], stride[3], padding[3], dilation[3];
  bool adaptive;
  bool channels_last;
};

struct MaxPoolArgs {
  PoolGeometry geometry;
  DType dtype;
  const void* in;  // input, or the gradient of the output
  void* out;       // output, or the gradient of the input
  int64_t*
      indices;  // of the output's shape: where in its plane of the input a maximum lies, (d * height + h) * width + w
};

struct AveragePoolArgs {
  PoolGeometry geometry;
  DType dtype;
  const void* in;
  void* out;
  bool count_include_pad;
  int64_t divisor;  // 0: the size of the window
};

// Integers too, as torch's CPU has them; gradients are of floating types.
MB_DECLARE_KERNEL(max_pool, void(Stream stream, const MaxPoolArgs& args));
MB_DECLARE_KERNEL(max_pool_backward, void(Stream stream, const MaxPoolArgs& args));
MB_DECLARE_KERNEL(average_pool, void(Stream stream, const AveragePoolArgs& args));
MB_DECLARE_KERNEL(average_pool_backward, void(Stream stream, const AveragePoolArgs& args));

}  // namespace mybackend::kernels
