// Entry points of csrc/kernels/im2col.cu: the windows of an image as columns, and the sum of columns back into an
// image.
//
// image (batch, channels, height, width) and columns (batch, channels * kernel height * kernel width, out height *
// out width), both dense.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

struct Im2colArgs {
  DType dtype;
  int64_t batch, channels;
  int64_t size[2], out[2], kernel[2], stride[2], padding[2], dilation[2];  // height, width
  const void* in;
  void* result;
};

MB_DECLARE_KERNEL(im2col, void(Stream stream, const Im2colArgs& args));
MB_DECLARE_KERNEL(col2im, void(Stream stream, const Im2colArgs& args));

}  // namespace mybackend::kernels
