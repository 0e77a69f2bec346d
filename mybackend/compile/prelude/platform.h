// Where generated code runs: nvcc or NVRTC (MB_GPU 1), or a vectorising C++ compiler (MB_GPU 0). The one header that asks.
//
// Nothing is included, so that a file of kernels compiles in a moment and NVRTC needs no search path.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define MB_GPU 1
#define MB_FN static __device__ __forceinline__
#define MB_KERNEL extern "C" __global__ void
#define MB_SPAN
#define MB_SIMD(...)
#define MB_INLINE_LAMBDA
// Several kernels in one launch: each is a function that gets its part of the launch's items. Of a GPU it is told where
// its items begin; a block has items of one segment only.
#define MB_SEGMENT static __device__ __noinline__ void
#define MB_SEGMENT_SPAN const mb_i64 mb_offset,
#define MB_ITEMS_OF(first, items) first,
#define MB_BLOCK_OF_THREADS const mb_i64 mb_begin = mb_i64(blockIdx.x) * blockDim.x, mb_end = mb_begin + 1;
#define MB_BLOCK_OF_ONE const mb_i64 mb_begin = blockIdx.x, mb_end = mb_begin + 1;
#else
#define MB_GPU 0
#define MB_FN static inline __attribute__((always_inline))
// A kernel's body is inlined into its entry, which runs the items [mb_begin, mb_end) of a launch.
#define MB_KERNEL static inline __attribute__((always_inline)) void
#define MB_SPAN const mb_i64 mb_begin, const mb_i64 mb_end,
#define MB_SEGMENT static __attribute__((noinline)) void
#define MB_SEGMENT_SPAN MB_SPAN
#define MB_ITEMS_OF(first, items) mb_within(mb_begin - (first), items), mb_within(mb_end - (first), items),
#define MB_BLOCK_OF_THREADS
#define MB_BLOCK_OF_ONE
#define MB_TEXT(...) #__VA_ARGS__
#define MB_PRAGMA(...) _Pragma(MB_TEXT(__VA_ARGS__))
#define MB_SIMD(...) MB_PRAGMA(omp simd __VA_ARGS__)
#define MB_INLINE_LAMBDA __attribute__((always_inline))
#define MB_HOST_ENTRY extern "C" __attribute__((visibility("default"))) void
// For a kernel that tests for NaN what it has chosen: g++ would choose between tests instead, and not vectorise that.
#ifdef __clang__
#define MB_TESTS_CHOICES
#else
#define MB_TESTS_CHOICES __attribute__((optimize("no-tree-pre")))
#endif
#endif

typedef long long mb_i64;
typedef unsigned long long mb_u64;
typedef unsigned int mb_u32;
typedef unsigned short mb_u16;
typedef unsigned char mb_u8;
typedef signed char mb_i8;

#if !MB_GPU
MB_FN mb_i64 mb_within(mb_i64 at, mb_i64 items) {
  return at < 0 ? 0 : at < items ? at : items;
}
#endif

// Same layout as device::ErrorRecord: the first writer wins.
struct mb_errors {
  int code;
  mb_i64 values[4];
};

union mb_slot {
  void* pointer;
  mb_i64 integer;
  double real;
};

template <class To, class From>
MB_FN To mb_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}

#if MB_GPU
static __device__ __noinline__ void mb_report(mb_errors* errors, int code, mb_i64 a, mb_i64 b) {
  if (atomicCAS(&errors->code, 0, code) == 0) {
    errors->values[0] = a;
    errors->values[1] = b;
  }
}
#else
static __attribute__((noinline, cold)) void mb_report(mb_errors* errors, int code, mb_i64 a, mb_i64 b) {
  int none = 0;
  if (__atomic_compare_exchange_n(&errors->code, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    errors->values[0] = a;
    errors->values[1] = b;
  }
}
#endif

// Codes of csrc/device/errors.h.
#define MB_ERROR_INDEX 14
#define MB_ERROR_ASSERTION 10

// A check that leaves the loop vectorisable: 0 for an index in [0, size), else the index with its sign flipped so that
// it is not 0; the largest of a loop is reported after it.
MB_FN mb_u64 mb_outside(mb_i64 index, mb_i64 size) {
  return mb_u64(index) < mb_u64(size) ? 0ull : mb_u64(index) ^ 0x8000000000000000ull;
}
MB_FN void mb_report_outside(mb_errors* errors, mb_u64 outside, mb_i64 size) {
  if (outside != 0) mb_report(errors, MB_ERROR_INDEX, mb_i64(outside ^ 0x8000000000000000ull), size);
}
