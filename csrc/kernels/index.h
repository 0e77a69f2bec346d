// Entry points of gather.cu and scatter.cu: elements moved to or from places that index arrays name.
//
// One description serves index, index_put, take, put, gather, scatter and their relatives. All arrays are walked over
// one space of `sizes` (dimension 0 innermost, strides in bytes). The `indexed` array is `to` of a scatter and `from`
// of a gather: the element at a position lies at its strided address plus the sum over the index arrays of index *
// indexed_stride. Strides of the indexed array are zero in dimensions that the index alone decides.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

constexpr int kMaxIndices = 8;

struct IndexOperands {
  int64_t numel;
  int ndim;
  int fiber_dims;  // scatter: the first `fiber_dims` dimensions; positions that differ in one of them never collide
  int count;       // index arrays
  bool wrap;       // indices count from the end when negative
  bool narrow;     // int32 indices instead of int64
  bool shuffled;   // scatter: the order in which colliding elements are combined does not matter
  DType dtype;
  char* to;
  const char* from;  // nullptr: `immediate`
  alignas(16) char immediate[16];
  const char* index[kMaxIndices];
  int64_t indexed_sizes[kMaxIndices];
  int64_t indexed_strides[kMaxIndices];
  int64_t sizes[kMaxDims];
  int64_t to_strides[kMaxDims];
  int64_t from_strides[kMaxDims];
  int64_t index_strides[kMaxIndices][kMaxDims];
  device::ErrorRecord* errors;
  int code;  // what to report of an index out of range: (index, size, dimension + ordinal of the index array)
  int64_t dimension;
};

enum class Update : int { Assign, Add, Multiply, Maximum, Minimum };

// to = from[index]
MB_DECLARE_KERNEL(gather_elements, void(Stream stream, const IndexOperands& operands));

// The index that stands for "an index was out of range" among combined indices.
constexpr int64_t kNowhere = int64_t(1) << 62;

// Of several index arrays makes one: to (int64) = the byte offset they name together, kNowhere where one is out of
// range (which is reported). `from` and its strides are ignored.
MB_DECLARE_KERNEL(combine_indices, void(Stream stream, const IndexOperands& operands));

// to[index] = update(to[index], from), by one int64 index array. An index equal to kNowhere is passed over in silence.
MB_DECLARE_KERNEL(scatter_elements, void(Stream stream, const IndexOperands& operands, Update update));

}  // namespace mybackend::kernels
