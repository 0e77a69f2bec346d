// Spans: runs of elements, one in each of several arrays, whose stored types are known only at run time.
//
//   each_in_span<Reads, Writes, T>(block, span, f)   f(v) for every position: v[k] is the element of array k as T;
//   arrays
//                                                    whose bit is set in Reads are loaded, those in Writes are stored
//   sum_in_span<T>(block, span, k, f)                the sum of f(x) over array k, and the largest f(x); every thread
//   max_in_span<T>(block, span, k, f)                gets the result
//   load_one<T>(data, dtype)                         one element as T
//   store_one(block, data, value, dtype)             one element, by one thread
//
// Arrays may be the same array exactly, but must not overlap in part. This is each_element of tile.h without shapes,
// and with several outputs: what kernels over lists of tensors are made of.
#pragma once

#include "csrc/device/tile.h"

namespace mybackend::device {

template <int N>
struct Span {
  char* data[N];  // of the first element
  DType dtype[N];
  int64_t position;  // of the first element, counted from where its array begins
  int64_t length;
};

}  // namespace mybackend::device

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/span_cuda.h"
#else
#include "csrc/device/span_host.h"
#endif
