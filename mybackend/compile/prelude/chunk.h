// Chunks: accesses of 16 bytes on the GPU, where a thread takes some neighbouring columns of a row.
//
//   MB_ROWS_BY(n, p, numel, length)   as MB_ROWS, on the GPU with n columns for a thread; n divides `length`
//     MB_CHUNK(T, n, name)            n elements in memory, in registers
//     MB_READ_CHUNK(name, element)    from memory on from `element`
//     MB_COLUMNS_BY(n, column, p)     as MB_COLUMNS; in it MB_IN(name, element) and MB_OUT(name, element) stand for the
//                                     column's element
//     MB_WRITE_CHUNK(name, element)
//
// On the host MB_IN and MB_OUT are the elements themselves, and nothing else is done.
#pragma once

#include "loops.h"

#if MB_GPU
template <class T, int n>
struct mb_chunk {
  T at[n];
};

// What does not lie at a multiple of 16 bytes goes element by element.
template <class T, int n>
MB_FN void mb_read_chunk(mb_chunk<T, n>& chunk, const T* from) {
  if (sizeof(chunk) % 16 == 0 && reinterpret_cast<mb_u64>(from) % 16 == 0) {
    int4 words[(sizeof(chunk) + 15) / 16];
#pragma unroll
    for (int i = 0; i < int(sizeof(chunk) / 16); i++) words[i] = reinterpret_cast<const int4*>(from)[i];
    __builtin_memcpy(&chunk, words, sizeof(chunk));
  } else {
#pragma unroll
    for (int i = 0; i < n; i++) chunk.at[i] = from[i];
  }
}
template <class T, int n>
MB_FN void mb_write_chunk(const mb_chunk<T, n>& chunk, T* to) {
  if (sizeof(chunk) % 16 == 0 && reinterpret_cast<mb_u64>(to) % 16 == 0) {
    int4 words[(sizeof(chunk) + 15) / 16];
    __builtin_memcpy(words, &chunk, sizeof(chunk));
#pragma unroll
    for (int i = 0; i < int(sizeof(chunk) / 16); i++) reinterpret_cast<int4*>(to)[i] = words[i];
  } else {
#pragma unroll
    for (int i = 0; i < n; i++) to[i] = chunk.at[i];
  }
}

#define MB_ROWS_BY(n, p, numel, length)                                                                            \
  for (mb_run<mb_index> p = mb_run<mb_index>::over(numel, length, MB_THREAD * (n), MB_THREADS * (n)); p.next();)
#define MB_CHUNK(T, n, name) mb_chunk<T, n> name
#define MB_READ_CHUNK(name, ...) mb_read_chunk(name, &(__VA_ARGS__))
#define MB_WRITE_CHUNK(name, ...) mb_write_chunk(name, &(__VA_ARGS__))
// The inner loop runs once; it is there to name the column.
#define MB_COLUMNS_BY(n, column, p)                                         \
  _Pragma("unroll") for (int mb_at = 0; mb_at < (n); mb_at++)               \
      for (mb_index column = p.first + mb_at, mb_last = column; column <= mb_last; column++)
#define MB_IN(name, ...) name.at[mb_at]
#define MB_OUT(name, ...) name.at[mb_at]
#else
#define MB_ROWS_BY(n, p, numel, length) MB_ROWS(p, numel, length)
#define MB_CHUNK(T, n, name)
#define MB_READ_CHUNK(name, ...)
#define MB_WRITE_CHUNK(name, ...)
#define MB_COLUMNS_BY(n, column, p) MB_COLUMNS(column, p)
#define MB_IN(name, ...) __VA_ARGS__
#define MB_OUT(name, ...) __VA_ARGS__
#endif
