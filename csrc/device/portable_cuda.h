// nvcc's half of portable.h: collectives by warp shuffles and one word of shared memory per warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#define MB_DEVICE __device__ __forceinline__
#define MB_DEVICE_NOINLINE __device__ __noinline__
#define MB_SHARED(block, type, name, count)                                    \
  __shared__ __align__(16) unsigned char name##_bytes[sizeof(type) * (count)]; \
  type* name = reinterpret_cast<type*>(name##_bytes)

namespace mybackend::device {

constexpr bool kThreadedBlocks = true;
// The limit of all of CUDA's devices is 4 KiB of arguments; run_grid takes another word.
constexpr int64_t kMaxKernelBytes = 4080;

struct Block {
  int64_t index;
  int threads;
  int thread;

  MB_DEVICE void sync() const { __syncthreads(); }

  template <class F>
  MB_DEVICE void each(int64_t n, F f) const {
    for (int64_t i = thread; i < n; i += threads) f(i);
  }

  // f(i, j) for 0 <= i < rows, 0 <= j < columns; neighbouring j are neighbours in time (host) or in threads (GPU).
  template <class F>
  MB_DEVICE void each2(int64_t rows, int64_t columns, F f) const {
    for (int64_t e = thread; e < rows * columns; e += threads) f(e / columns, e % columns);
  }

  template <class T, class F>
  MB_DEVICE T sum(int64_t n, F f) const {
    return reduce<T>(n, T(0), [](T a, T b) { return a + b; }, f);
  }

  // NaN wins, as in ATen.
  template <class T, class F>
  MB_DEVICE T max(int64_t n, F f) const {
    const T lowest = std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                                          : std::numeric_limits<T>::lowest();
    return reduce<T>(n, lowest, [](T a, T b) { return (a != a || a > b) ? a : b; }, f);
  }

  template <class T, class F>
  MB_DEVICE T min(int64_t n, F f) const {
    const T highest =
        std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    return reduce<T>(n, highest, [](T a, T b) { return (a != a || a < b) ? a : b; }, f);
  }

  // `op` is associative and commutative; the order is fixed by the number of threads.
  template <class T, class Op, class F>
  MB_DEVICE T reduce(int64_t n, T identity, Op op, F f) const {
    T total = identity;
    for (int64_t i = thread; i < n; i += threads) total = op(total, f(i));
    return combine(total, identity, op);
  }

  // Inclusive scan in order; `op` associative. Pieces of `threads` elements, each scanned in shared memory.
  template <class T, class Op, class F, class S>
  MB_DEVICE T scan(int64_t n, T carry, Op op, F f, S store) const {
    T* lane = reinterpret_cast<T*>(lanes_of_scans<1024 * sizeof(T)>());
    for (int64_t begin = 0; begin < n; begin += threads) {
      const int64_t i = begin + thread;
      const bool inside = i < n;
      T value = carry;
      if (inside) value = f(i);
      lane[thread] = value;
      __syncthreads();
      const int count = n - begin < threads ? int(n - begin) : threads;
      for (int reach = 1; reach < count; reach *= 2) {
        const bool take = inside && thread >= reach;
        T other = value;
        if (take) other = lane[thread - reach];
        __syncthreads();
        if (take) lane[thread] = value = op(other, value);
        __syncthreads();
      }
      if (inside) store(i, value = op(carry, value));
      carry = op(carry, lane[count - 1]);
      __syncthreads();
    }
    return carry;
  }

 private:
  // One piece of shared memory for a size, whatever a collective is called with: pieces of their own for each functor
  // would soon be more than the 48 KiB a block may have.
  template <size_t kBytes>
  MB_DEVICE static void* lanes_of_scans() {
    __shared__ __align__(16) unsigned char bytes[kBytes];
    return bytes;
  }
  template <size_t kBytes>
  MB_DEVICE static void* words_of_warps() {
    __shared__ __align__(16) unsigned char bytes[kBytes];
    return bytes;
  }

  template <class T>
  MB_DEVICE static T shuffle_xor(T value, int mask) {
    static_assert(sizeof(T) % 4 == 0 || sizeof(T) < 4, "shuffled in words");
    if constexpr (sizeof(T) <= 4) {
      unsigned word = 0;
      memcpy(&word, &value, sizeof(T));
      word = __shfl_xor_sync(0xffffffffu, word, mask);
      memcpy(&value, &word, sizeof(T));
    } else {
      unsigned words[sizeof(T) / 4];
      memcpy(words, &value, sizeof(T));
#pragma unroll
      for (unsigned w = 0; w < sizeof(T) / 4; w++) words[w] = __shfl_xor_sync(0xffffffffu, words[w], mask);
      memcpy(&value, words, sizeof(T));
    }
    return value;
  }

  template <class T, class Op>
  MB_DEVICE T combine(T value, T identity, Op op) const {
    T* of_warp = reinterpret_cast<T*>(words_of_warps<32 * sizeof(T)>());
    for (int mask = 16; mask > 0; mask /= 2) value = op(value, shuffle_xor(value, mask));
    __syncthreads();  // an earlier collective may still be reading
    if (thread % 32 == 0) of_warp[thread / 32] = value;
    __syncthreads();
    value = thread % 32 < (threads + 31) / 32 ? of_warp[thread % 32] : identity;
    for (int mask = 16; mask > 0; mask /= 2) value = op(value, shuffle_xor(value, mask));
    return value;
  }
};

template <class K>
__global__ void run_grid(K kernel, int64_t blocks) {
  for (int64_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    if (b != blockIdx.x) __syncthreads();  // shared memory is used again
    kernel(Block{b, int(blockDim.x), int(threadIdx.x)});
  }
}

// Threads are a multiple of the warp, so that every lane takes part in the shuffles.
template <class K>
void launch_blocks(Stream stream, int64_t blocks, int threads, int64_t /*work*/, const K& kernel) {
  constexpr int64_t kMostBlocks = 0x7fffffff;
  const unsigned grid = unsigned(blocks < kMostBlocks ? blocks : kMostBlocks);
  run_grid<<<grid, unsigned((threads + 31) / 32 * 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(kernel, blocks);
}

MB_DEVICE void report(ErrorRecord* record, int code, int64_t a = 0, int64_t b = 0, int64_t c = 0, int64_t d = 0) {
  if (atomicCAS_system(&record->code, 0, code) == 0) {
    record->values[0] = a;
    record->values[1] = b;
    record->values[2] = c;
    record->values[3] = d;
    __threadfence_system();
  }
}

}  // namespace mybackend::device
