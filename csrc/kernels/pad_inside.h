// Entry points of pad_inside.cu: pads that repeat what is inside, by reflection or of the border.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// The last `dims` dimensions of contiguous (planes, in) become (planes, out); `before` elements are added (or,
// negative, cut off) at the beginning of each. Sizes are innermost first.
struct Pad {
  const char* in;  // backward: the gradient of the output
  char* out;       // backward: the gradient of the input
  DType dtype;
  int64_t planes;
  int64_t in_size[3], out_size[3], before[3];  // of the forward; unused dimensions are 1, 1, 0
  bool reflect;                                // else the border is repeated
};
MB_DECLARE_KERNEL(pad_inside, void(Stream stream, const Pad& pad));
MB_DECLARE_KERNEL(pad_inside_backward, void(Stream stream, const Pad& pad));

}  // namespace mybackend::kernels
