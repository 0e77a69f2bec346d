// Small matrix products inside a block, the inner loops of attention.
//
// The right factor and the result are "lane" matrices: arrays of rows of N neighbouring values in shared memory, one
// lane for each query (or key). The left factor is read in place through two strides, one value for all lanes at a
// time, so no operand has to be transposed for any of the products attention needs, and every loop runs across lanes.
//
//   product<N, Add>(block, m, k, a, b, c, lanes)
//                                           c[m][N] = (Add ? c : 0) + sum over k of a(m, k) * b[k][N], at least the
//                                           first `lanes` (default all) of each row
//   to_lanes<N>(block, ...)                 rows of a matrix in memory become lanes
//   from_lanes<N>(block, ...)               and back
//   stage(block, ...)                       a left factor that `product` can read: converted to float where that is
//                                           cheaper than converting at each use
//
// None of them waits: the caller puts `block.sync()` between writing and reading.
//
//   C++ compiler   register tiles of vectors (GCC vector extensions): 8 x 2 vectors with AVX-512, 4 x 2 otherwise
//   nvcc           4 x 4 values a thread
#pragma once

#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::device {

// Element (m, k) of a left factor is data[m * row + k * column].
template <class S>
struct Factor {
  const S* data;
  int64_t row, column;
  MB_DEVICE Factor transposed() const { return {data, column, row}; }
};

}  // namespace mybackend::device

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/product_threads.h"
#else
#include "csrc/device/product_host.h"
#endif
