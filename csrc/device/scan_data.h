// Scan: one cumulative operation as plain data.
//
// There are `lines` lines of n elements each; a line is one element of the kept dimensions. Strides are in bytes.
#pragma once

#include "csrc/device/reduction.h"

namespace mybackend {

struct Scan {
  DType in_dtype;
  DType out_dtype[2];
  const char* in;
  char* out[2];  // values and, or null, positions; may be the input itself
  int64_t n, lines;
  int64_t in_stride, out_stride[2];
  int kept;
  int64_t kept_size[kMaxDims], kept_stride[kMaxDims], kept_out_stride[2][kMaxDims];
};

}  // namespace mybackend
