// The words of CUDA that generated kernels use, on CPU threads: one block at a time, a thread for each of its threads.
//
// For tests of the GPU form of a kernel where there is no GPU: barriers, shared memory and shuffles are real, so that a
// collective that a thread does not reach hangs, and a missing barrier is a race that ThreadSanitizer sees.
#pragma once

#include <barrier>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __CUDACC__
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

struct int4 {
  int x, y, z, w;
};
struct cuda_index {
  unsigned x;
};
static thread_local cuda_index threadIdx;
static cuda_index blockIdx, blockDim, gridDim;

static std::unique_ptr<std::barrier<>> cuda_block;
static std::vector<std::unique_ptr<std::barrier<>>> cuda_warps;
static unsigned cuda_words[1024];

static void __syncthreads() {
  cuda_block->arrive_and_wait();
}
// Every thread of a warp must come; what a lane beyond the warp would have is the thread's own word, as on a GPU.
static unsigned cuda_shuffle(unsigned word, int from) {
  std::barrier<>& warp = *cuda_warps[threadIdx.x / 32];
  cuda_words[threadIdx.x] = word;
  warp.arrive_and_wait();
  const unsigned read = from < 0 || from >= 32 ? word : cuda_words[threadIdx.x / 32 * 32 + unsigned(from)];
  warp.arrive_and_wait();
  return read;
}
static unsigned __shfl_sync(unsigned, unsigned word, int lane) {
  return cuda_shuffle(word, lane);
}
static unsigned __shfl_down_sync(unsigned, unsigned word, unsigned by) {
  return cuda_shuffle(word, int(threadIdx.x % 32 + by));
}
static unsigned __shfl_up_sync(unsigned, unsigned word, unsigned by) {
  return cuda_shuffle(word, int(threadIdx.x % 32) - int(by));
}

template <class T>
static T atomicCAS(T* at, T expected, T desired) {
  __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T>
static T atomicAdd(T* at, T value) {
  T seen;
  __atomic_load(at, &seen, __ATOMIC_RELAXED);
  for (T next = seen + value; !__atomic_compare_exchange(at, &seen, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);)
    next = seen + value;
  return seen;
}
static float rsqrtf(float x) {
  return 1 / std::sqrt(x);
}
static double rsqrt(double x) {
  return 1 / std::sqrt(x);
}

static void cuda_launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  gridDim.x = blocks;
  blockDim.x = threads;
  cuda_block = std::make_unique<std::barrier<>>(threads);
  cuda_warps.clear();
  for (unsigned warp = 0; warp < threads / 32; warp++) cuda_warps.push_back(std::make_unique<std::barrier<>>(32));
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads; thread++) {
    running.emplace_back([&, thread] {
      threadIdx.x = thread;
      for (unsigned block = 0; block < blocks; block++) {
        if (thread == 0) blockIdx.x = block;
        __syncthreads();
        kernel();
        __syncthreads();
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}
