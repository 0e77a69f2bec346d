// Entry point of csrc/kernels/pool_fractional.cu: max pooling over windows at random places.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

// Arrays are dense (planes, depth, height, width); `samples` is (planes, dims), its columns in the order of `sample`.
struct FractionalPoolArgs {
  DType dtype;
  int64_t planes;
  int64_t in[3], out[3], pool[3];
  int dims;       // samples a plane
  int sample[3];  // the column of each dimension, -1 for one that is not pooled
  const void* input;
  const void* samples;
  void* output;
  int64_t* indices;  // within the plane of the input
};

MB_DECLARE_KERNEL(fractional_max_pool, void(Stream stream, const FractionalPoolArgs& args));

}  // namespace mybackend::kernels
