// Entry points of resample.cu: interpolation along one or two axes, and nearest neighbours.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// What an axis becomes: out[o] = sum over t < count[o] of weight[t * out_size + o] * in[start[o] + t]. Weights have the
// type that arithmetic on the elements is done in.
struct Taps {
  int64_t in_size, out_size;
  const int32_t* start;
  const int32_t* count;
  const char* weight;
  int64_t width;                 // the largest count
  int64_t full_begin, full_end;  // outputs in here have `width` taps
};

// One axis of (outer, axis, inner). Either array may be stored as the other's compute type.
struct Resample {
  const char* in;
  char* out;
  DType in_dtype, out_dtype;
  int64_t outer, inner;
  Taps axis;
};
MB_DECLARE_KERNEL(resample_axis, void(Stream stream, const Resample& resample));

// Both axes of planes (y, x). A block makes `band` rows of `columns` columns, by way of the inputs' rows
// [first[b], last[b]) resampled along x, of which kPlaneTile elements fit.
constexpr int64_t kPlaneTile = 4096;
struct ResamplePlane {
  const char* in;
  char* out;
  DType in_dtype, out_dtype;
  int64_t planes, band, columns;
  const int32_t* first;
  const int32_t* last;
  Taps y, x;
};
MB_DECLARE_KERNEL(resample_plane, void(Stream stream, const ResamplePlane& resample));

// out[p, r, c] = in[p, row[r], column[c]], elements of `size` bytes: nearest neighbours, where every weight is one.
struct ResampleCopy {
  const char* in;
  char* out;
  int64_t size, planes;
  int64_t in_rows, in_columns, out_rows, out_columns;
  const int32_t* row;     // nullptr: all as they are
  const int32_t* column;  // nullptr: column c is input c / repeat
  int64_t repeat;
};
MB_DECLARE_KERNEL(resample_copy, void(Stream stream, const ResampleCopy& resample));

}  // namespace mybackend::kernels
