// Entry points of grid_sample.cu: images sampled at the places that a grid names, and the gradients of that.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

enum class GridInterpolation : int { Bilinear = 0, Nearest = 1, Bicubic = 2 };  // numbered as upstream's
enum class GridPadding : int { Zeros = 0, Border = 1, Reflection = 2 };

// Images are (batch, channels, in_size...), the grid is (batch, out_size..., dims); all arrays are contiguous and of
// `dtype`. Sizes are outermost first; those of two dimensions begin with 1. A place of the grid is (x, y[, z]), x along
// the last dimension of the image, -1 and 1 its ends.
struct GridSample {
  DType dtype;
  int64_t batch, channels;
  int dims;
  int64_t in_size[3], out_size[3];
  GridInterpolation interpolation;
  GridPadding padding;
  bool align_corners;
  const void* in;
  const void* grid;
};

MB_DECLARE_KERNEL(grid_sample, void(Stream stream, const GridSample& args, void* out));

// Adds to `grad_in`, which has the images' shape and is of the compute type.
MB_DECLARE_KERNEL(grid_sample_backward_input,
                  void(Stream stream, const GridSample& args, const void* grad, void* grad_in));
// Writes `grad_grid`, which has the grid's shape.
MB_DECLARE_KERNEL(grid_sample_backward_grid,
                  void(Stream stream, const GridSample& args, const void* grad, void* grad_grid));

}  // namespace mybackend::kernels
