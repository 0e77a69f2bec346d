// Tiles: some rows by some columns of a kernel's items, where something is read across the rows.
//
//   MB_TILED(t, numel, length)          items in rows of `length`, tile after tile
//     MB_TURNED(T, name)                what is read across: an element of type T for each item of the tile
//     if (MB_TALL(t) && ...) {          as many rows as vectors hold, and in each column neighbours in memory: the host
//       MB_TILE_COLUMNS(column, t)      each column: MB_COLUMN_AT(name, t, column, first element)
//     } else {
//       MB_TILE_COLUMNS(column, t)      each column, and in it
//         MB_TILE_ROWS(row, t)          each row: MB_ACROSS(name, t, row, column) = ...
//     }
//     MB_TURN(name, t), MB_TILE_SYNC()
//     MB_ROWS_OF_TILE(row, t)           each row, and in it
//       MB_COLUMNS_OF_TILE(column, t)   each column: ... = MB_HELD(name, t, row, column)
//     MB_TILE_SYNC()
//
// On the GPU a block takes a tile: its threads read along the columns' memory into shared memory and compute along the
// rows. On the host a tile is turned in blocks of eight by eight, in vector registers, from memory where that is in runs.
#pragma once

#include "loops.h"

#if MB_GPU
enum { kTileRows = 32, kTileColumns = 32 };

template <class T>
struct mb_turned {
  T held[kTileColumns][kTileRows + 1];  // one more, so that a column's rows lie in different banks
};

template <class I>
struct mb_tile {
  I row, end_row, first, last, numel, length;
  mb_i64 at;
  MB_FN mb_tile over(I numel, I length) {
    mb_tile tile;
    tile.numel = numel;
    tile.length = length;
    tile.at = mb_i64(blockIdx.x) - mb_offset / blockDim.x;
    return tile;
  }
  __device__ __forceinline__ bool next() {
    const I rows = numel / length;
    const mb_i64 across = (length + kTileColumns - 1) / kTileColumns;
    if (at >= across * ((rows + kTileRows - 1) / kTileRows)) return false;
    row = I(at / across) * kTileRows;
    first = I(at % across) * kTileColumns;
    end_row = row + kTileRows < rows ? row + kTileRows : rows;
    last = first + kTileColumns < length ? first + kTileColumns : length;
    at += gridDim.x;
    return true;
  }
};

#define MB_TILED(t, numel, length) for (mb_tile<mb_index> t = mb_tile<mb_index>::over(numel, length); t.next();)
#define MB_TURNED(T, name) __shared__ mb_turned<T> name
#define MB_TALL(t) false
#define MB_COLUMN_AT(name, t, column, element)
#define MB_TURN(name, t)
#define MB_TILE_SYNC() __syncthreads()
#define MB_ACROSS(name, t, row, column) name.held[column - t.first][row - t.row]
#define MB_HELD(name, t, row, column) name.held[column - t.first][row - t.row]
#define MB_TILE_COLUMNS(column, t) \
  for (mb_index column = t.first + threadIdx.x / 32; column < t.last; column += blockDim.x / 32)
#define MB_TILE_ROWS(row, t) for (mb_index row = t.row + threadIdx.x % 32; row < t.end_row; row += 32)
#define MB_ROWS_OF_TILE(row, t) \
  for (mb_index row = t.row + threadIdx.x / 32; row < t.end_row; row += blockDim.x / 32)
#define MB_COLUMNS_OF_TILE(column, t) \
  for (mb_index column = t.first + threadIdx.x % 32; column < t.last; column += 32)
#else
// Columns are read two lines at a time, which the hardware fetches together.
enum { kTileRows = 32, kTileColumns = 64 };

template <class T>
struct mb_turned {
  const T* at[kTileColumns];  // each column: in memory, or in `columns`
  T columns[kTileColumns][kTileRows], rows[kTileRows][kTileColumns];
};

// Bits of an element, and eight of them.
template <int size>
struct mb_bits_of;
template <>
struct mb_bits_of<1> {
  typedef mb_u8 type;
};
template <>
struct mb_bits_of<2> {
  typedef mb_u16 type;
};
template <>
struct mb_bits_of<4> {
  typedef mb_u32 type;
};
template <>
struct mb_bits_of<8> {
  typedef mb_u64 type;
};

// Three times the first four vectors are interleaved with the other four: what was eight columns is eight rows.
template <class T>
MB_FN void mb_turn(mb_turned<T>& turned, bool in_runs, int rows, int columns) {
  typedef typename mb_bits_of<sizeof(T)>::type U;
  typedef U Eight __attribute__((vector_size(8 * sizeof(U)), aligned(sizeof(U)), may_alias));
  for (int column = in_runs ? columns : 0; column < (columns + 7) / 8 * 8; column++)
    turned.at[column] = in_runs ? turned.at[0] : turned.columns[column];
  for (int column = 0; column < columns; column += 8) {
    for (int row = 0; row < rows; row += 8) {
      Eight a[8], b[8];
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) a[i] = *reinterpret_cast<const Eight*>(turned.at[column + i] + row);
#pragma GCC unroll 3
      for (int time = 0; time < 3; time++) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
          b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
          b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) a[i] = b[i];
      }
#pragma GCC unroll 8
      for (int i = 0; i < 8; i++) *reinterpret_cast<Eight*>(&turned.rows[row + i][column]) = a[i];
    }
  }
}

// Whole rows are taken kTileRows at a time, the last of them in eights, in tiles of kTileColumns; a launch's part of a row,
// by itself.
template <class I>
struct mb_tile {
  I row, end_row, first, last, numel, length;
  mb_i64 at, end;
  bool whole;
  MB_FN mb_tile over(I numel, I length, mb_i64 begin, mb_i64 end) {
    mb_tile tile;
    tile.numel = numel;
    tile.length = length;
    tile.at = begin;
    tile.end = end;
    tile.whole = false;
    return tile;
  }
  inline __attribute__((always_inline)) bool next() {
    if (whole) {
      first = last;
      last = length - first < kTileColumns ? length : first + kTileColumns;
      if (first < length) return true;
      whole = false;
      at += mb_i64(end_row - row) * length;
    }
    if (at >= end) return false;
    row = I(at / length);
    first = I(at - mb_i64(row) * length);
    const mb_i64 rows = (end - at) / length;
    whole = first == 0 && rows > 0;
    end_row = row + (!whole ? 1 : rows >= kTileRows ? kTileRows : rows >= 8 ? I(rows) / 8 * 8 : I(rows));
    last = length - first < kTileColumns ? length : first + kTileColumns;
    if (!whole) {
      if (end - at < last - first) last = I(first + (end - at));
      at += last - first;
    }
    return true;
  }
};

#define MB_TILED(t, numel, length) \
  for (mb_tile<mb_index> t = mb_tile<mb_index>::over(numel, length, mb_begin, mb_end); t.next();)
#define MB_TURNED(T, name) mb_turned<T> name
#define MB_TALL(t) ((t.end_row - t.row) % 8 == 0)
#define MB_COLUMN_AT(name, t, column, element) name.at[column - t.first] = &(element)
#define MB_TURN(name, t) mb_turn(name, in_runs, int(t.end_row - t.row), int(t.last - t.first))
#define MB_TILE_SYNC()
#define MB_ACROSS(name, t, row, column) name.columns[column - t.first][row - t.row]
#define MB_HELD(name, t, row, column) name.rows[row - t.row][column - t.first]
#define MB_TILE_COLUMNS(column, t) for (mb_index column = t.first; column < t.last; column++)
#define MB_TILE_ROWS(row, t) for (mb_index row = t.row; row < t.end_row; row++)
#define MB_ROWS_OF_TILE(row, t) for (mb_index row = t.row; row < t.end_row; row++)
#define MB_COLUMNS_OF_TILE(column, t) for (mb_index column = t.first; column < t.last; column++)
#endif
