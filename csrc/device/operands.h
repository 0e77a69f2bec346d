// Operands<N>: the arrays of one elementwise operation, as plain data.
//
// Outputs come first. All arrays have the same `sizes`; strides are in bytes and dimension 0 is the innermost, as in
// TensorIterator after coalescing. `dtype` is what is stored; kernels convert to the type they compute in. An operand
// without `data` is a scalar held in `immediate` (its `dtype` says how to read it), e.g. a 0-dim CPU tensor.
#pragma once

#include <cstdint>

#include "csrc/device/dtype.h"

namespace mybackend {

constexpr int kMaxDims = 25;  // upstream's limit for its accelerator kernels

template <int N>
struct Operands {
  static constexpr int count = N;
  int64_t numel;
  int ndim;
  DType compute;  // common dtype of the operation; visit it as compute_dtype(compute)
  DType dtype[N];
  bool contiguous[N];  // elements lie one after the other in iteration order
  char* data[N];
  alignas(16) char immediate[N][16];
  int64_t sizes[kMaxDims];
  int64_t strides[N][kMaxDims];
};

}  // namespace mybackend
