// Block and launch(): the words a kernel is written in, for three builds of one source.
//
//   nvcc                     many threads a block; collectives use warp shuffles
//   C++ compiler             one thread a block; `each` is a plain loop that vectorises, barriers vanish
//   C++ with MB_TEST_THREADS N real threads a block and a barrier, for ThreadSanitizer (tests only)
//
// A kernel is a trivially copyable struct with `MB_DEVICE void operator()(Block block) const`. It must be right for ANY
// number of threads, one included:
//   - loops over data go through `block.each(n, f)`; iterations may run at the same time and in any order;
//   - a reduction is ONE collective over the data: `block.sum<T>(n, f)`, `max`, `min`, `reduce<T>(n, identity, op, f)`,
//     where f(i) yields the i-th term. Every thread gets the result;
//   - `block.sync()` is between a write and another thread's read of the same shared or global memory;
//   - no early return before a collective, and no number of threads written into the code;
//   - shared memory is `MB_SHARED(block, T, name, N)`, N a constant.
// Results may depend on the number of threads only by rounding.
//
// The only file, with tile.h and numeric.h, that may ask which compiler it is in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/device/api.h"

#if defined(__CUDACC__)
#include "csrc/device/portable_cuda.h"
#elif defined(MB_TEST_THREADS)
#include "csrc/device/portable_threads.h"
#else
#include "csrc/device/portable_host.h"
#endif

namespace mybackend::device {

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// How a kernel is spread: `blocks` blocks; on a GPU each has `threads` threads; `work` is the number of elements one
// block handles, from which the host driver decides how many blocks are worth a task of their own.
struct Grid {
  int64_t blocks;
  int threads;
  int64_t work;
};

// Puts the kernel on the stream. A grid of no blocks does nothing.
template <class K>
void launch(Stream stream, Grid grid, const K& kernel) {
  static_assert(std::is_trivially_copyable_v<K>, "a kernel is copied to the device byte by byte");
  if (grid.blocks > 0) launch_blocks(stream, grid.blocks, grid.threads, grid.work, kernel);
}

}  // namespace mybackend::device
