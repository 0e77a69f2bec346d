// Loops over the items of a kernel, the same words on both sides.
//
//   MB_ROWS(p, numel, length)       items in rows of `length`: p.row, and columns p.first to p.last of it
//   MB_SQUARE_ROWS(p, numel, length) the same in an order that suits transpositions; MB_TILED is in tile.h
//     MB_COLUMNS(column, p)         each column: a loop that vectorises on the host, one item per thread on the GPU
//   MB_TILES(p, numel, length)      the same in pieces of at most MB_TILE_LANES columns, for outer reductions
//     MB_EACH_LANE(lane, p)         each column of the piece; a lane's accumulator is acc[lane]
//   MB_BLOCKS(item, numel)           one item at a time: on the GPU one for each block of threads
//   MB_LOOP(r, numel)               elements of a reduction, shared out among the threads of a block
//   MB_LOOP_ROWS(q, numel, length)  the same in rows; MB_LOOP_COLUMNS(r, q) inside
//   MB_LOOP_TILES(q, numel, length) the same in pieces of lanes; MB_EACH_LANE(lane, q) inside
//   MB_ROUNDS(q, numel, length)     the same with all threads of a block in each round, for scans; q.count of its lanes
//   MB_SERIAL_BY(n, r, from, end)   elements of a reduction, n at a time, in every thread
//   MB_SERIAL(r, from, end, n)      those that are left, one after another: all if n is 1
//   MB_PARTS(part, end, numel, length) parts of a reduction, of `length` elements or less: from `part` to `end`
//   MB_ONCE                         once for each block
//
// `mb_index` is int where every index of the kernel fits, else mb_i64; the kernel defines it.
#pragma once

#include "platform.h"

#if MB_GPU
#define MB_LANES 1
#define MB_TILE_LANES 1
#define MB_ONCE if (threadIdx.x == 0)
// The launch's number of a kernel's first item; a segment's parameter hides it.
enum : mb_i64 { mb_offset = 0 };
#define MB_THREAD (mb_i64(blockIdx.x) * blockDim.x + threadIdx.x - mb_offset)
#define MB_THREADS (mb_i64(gridDim.x) * blockDim.x)
#else
#define MB_LANES 64
// Wider: a tile's rows are far apart in memory, and much of each should be read at a time.
#define MB_TILE_LANES 256
#define MB_ONCE
#endif

template <class I>
struct mb_run {
  I row, first, last;
  I numel, length;
#if MB_GPU
  mb_i64 at, step;
  MB_FN mb_run over(I numel, I length, mb_i64 start, mb_i64 step) {
    mb_run run;
    run.numel = numel;
    run.length = length;
    run.at = start;
    run.step = step;
    return run;
  }
  __device__ __forceinline__ bool next() {
    if (at >= numel) return false;
    row = I(at) / length;
    first = I(at) - row * length;
    last = first + 1;
    at += step;
    return true;
  }
#else
  I at, end, most;
  MB_FN mb_run over(I numel, I length, mb_i64 begin, mb_i64 end, I most) {
    mb_run run;
    run.numel = numel;
    run.length = length;
    run.at = I(begin);
    run.end = I(end);
    run.most = most;
    return run;
  }
  inline __attribute__((always_inline)) bool next() {
    if (at >= end) return false;
    row = length >= numel ? 0 : at / length;
    first = at - row * length;
    I count = length - first < end - at ? length - first : end - at;
    count = count < most ? count : most;
    last = first + count;
    at += count;
    return true;
  }
#endif
};

#if !MB_GPU
// Rows of a transposition: blocks of kSquareRows rows are walked in tiles of kSquareColumns columns, so that what is read
// across the rows is still in the cache for the next row.
enum { kSquareRows = 16, kSquareColumns = 64 };
template <class I>
struct mb_squares {
  mb_run<I> run;
  I row, first, last, base;
  bool in_block;
  MB_FN mb_squares over(I numel, I length, mb_i64 begin, mb_i64 end) {
    mb_squares squares;
    squares.run = mb_run<I>::over(numel, length, begin, end, length);
    squares.in_block = false;
    return squares;
  }
  inline __attribute__((always_inline)) bool next() {
    const I length = run.length;
    if (in_block) {
      if (++row < base + kSquareRows) return true;
      row = base;
      first = last;
      last = length - first < kSquareColumns ? length : first + kSquareColumns;
      if (first < length) return true;
      in_block = false;
      run.at += kSquareRows * length;
    }
    if (run.at < run.end && run.at % length == 0 && (run.end - run.at) / length >= kSquareRows) {
      in_block = true;
      row = base = run.at / length;
      first = 0;
      last = length < kSquareColumns ? length : kSquareColumns;
      return true;
    }
    if (!run.next()) return false;
    row = run.row;
    first = run.first;
    last = run.last;
    return true;
  }
};
#endif

// Rounds over a row: the threads of a block, or the lanes of the host, take an element each.
template <class I>
struct mb_round : mb_run<I> {
  int count;
#if MB_GPU
  MB_FN mb_round over(I numel, I length) {
    mb_round round;
    static_cast<mb_run<I>&>(round) = mb_run<I>::over(numel, length, 0, blockDim.x);
    return round;
  }
  __device__ __forceinline__ bool next() {
    if (this->at >= this->numel) return false;
    const mb_i64 left = this->numel - this->at, mine = this->at + threadIdx.x;
    count = left < this->step ? int(left) : int(this->step);
    this->row = I(mine) / this->length;
    this->first = I(mine) - this->row * this->length;
    this->last = this->first + (mine < this->numel ? 1 : 0);
    this->at += this->step;
    return true;
  }
#else
  MB_FN mb_round over(I numel, I length) {
    mb_round round;
    static_cast<mb_run<I>&>(round) = mb_run<I>::over(numel, length, 0, numel, MB_LANES);
    return round;
  }
  inline __attribute__((always_inline)) bool next() {
    if (!mb_run<I>::next()) return false;
    count = int(this->last - this->first);
    return true;
  }
#endif
};

#if MB_GPU
#define MB_SQUARE_ROWS(p, numel, length) MB_ROWS(p, numel, length)
#define MB_ROWS(p, numel, length) \
  for (mb_run<mb_index> p = mb_run<mb_index>::over(numel, length, MB_THREAD, MB_THREADS); p.next();)
#define MB_TILES(p, numel, length) MB_ROWS(p, numel, length)
#define MB_COLUMNS(column, p) for (mb_index column = p.first; column < p.last; column++)
#define MB_BLOCKS(item, numel) for (mb_index item = mb_index(blockIdx.x - mb_offset); item < numel; item += gridDim.x)
#define MB_LOOP(r, numel) for (mb_index r = threadIdx.x; r < numel; r += blockDim.x)
#define MB_LOOP_ROWS(q, numel, length) \
  for (mb_run<mb_index> q = mb_run<mb_index>::over(numel, length, threadIdx.x, blockDim.x); q.next();)
#define MB_LOOP_TILES(q, numel, length) MB_LOOP_ROWS(q, numel, length)
#define MB_FIRST_LANE threadIdx.x
#else
#define MB_MOST mb_index(~(mb_index(1) << (sizeof(mb_index) * 8 - 1)))
#define MB_ROWS(p, numel, length) \
  for (mb_run<mb_index> p = mb_run<mb_index>::over(numel, length, mb_begin, mb_end, MB_MOST); p.next();)
#define MB_SQUARE_ROWS(p, numel, length) \
  for (mb_squares<mb_index> p = mb_squares<mb_index>::over(numel, length, mb_begin, mb_end); p.next();)
#define MB_TILES(p, numel, length) \
  for (mb_run<mb_index> p = mb_run<mb_index>::over(numel, length, mb_begin, mb_end, MB_TILE_LANES); p.next();)
#define MB_COLUMNS(column, p) for (mb_index column = p.first; column < p.last; column++)
#define MB_BLOCKS(item, numel) for (mb_index item = mb_index(mb_begin); item < mb_index(mb_end); item++)
#define MB_LOOP(r, numel) for (mb_index r = 0; r < numel; r++)
#define MB_LOOP_ROWS(q, numel, length) \
  for (mb_run<mb_index> q = mb_run<mb_index>::over(numel, length, 0, numel, MB_MOST); q.next();)
#define MB_LOOP_TILES(q, numel, length) \
  for (mb_run<mb_index> q = mb_run<mb_index>::over(numel, length, 0, numel, MB_LANES); q.next();)
#define MB_FIRST_LANE 0
#endif
#define MB_ROUNDS(q, numel, length) for (mb_round<mb_index> q = mb_round<mb_index>::over(numel, length); q.next();)
#define MB_EACH_LANE(lane, p) for (int lane = 0; lane < int(p.last - p.first); lane++)
#define MB_LOOP_COLUMNS(r, q) MB_COLUMNS(r, q)
#define MB_SERIAL(r, from, end, n) for (mb_index r = n == 1 ? (from) : end - (end - (from)) % n; r < end; r++)
#define MB_SERIAL_BY(n, r, from, end) for (mb_index r = from; end - r >= n; r += n)
#define MB_PARTS(part, end, numel, length)                                     \
  for (mb_index part = 0, end = numel < length ? numel : length; part < numel; \
       part = end, end = numel - end < length ? numel : end + length)
