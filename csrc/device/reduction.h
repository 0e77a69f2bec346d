// Reduction: one reduction of an array over some of its dimensions, as plain data.
//
// The input's dimensions are split into reduced ones and kept ones; in each group dimension 0 has the smallest input
// stride, and neighbours that can be merged have been. Strides are in bytes. `count` elements go into each of `outputs`
// results. Positions count the reduced elements of one output from 0, reduced dimension 0 fastest.
// There are one or two output arrays (values and indices, variance and mean); a second one that is absent is null.
#pragma once

#include <cstdint>

#include "csrc/device/operands.h"

namespace mybackend {

struct Reduction {
  DType in_dtype;
  DType out_dtype[2];
  const char* in;
  char* out[2];
  int64_t count, outputs;
  int reduced, kept;  // numbers of dimensions; 0 where the group is a single element
  int64_t reduced_size[kMaxDims], reduced_stride[kMaxDims];
  int64_t kept_size[kMaxDims], kept_stride[kMaxDims];
  int64_t out_stride[2][kMaxDims];
};

// Memory of the device for partial results, taken at most once in a call and valid until the stream has passed it.
struct Workspace {
  void* context;
  char* (*take)(void* context, int64_t bytes);
};

}  // namespace mybackend
