// The product of a tile of rows of `a` and a tile of columns of `b`: what templates of matrix products are made of.
//
//   mb_tile_product<Sum, kRows, kColumns, kDepth>(a, b, rows, columns, depth, store)
//
// `a` is (rows, depth) and `b` (depth, columns), each an mb_matrix of any strides; rows <= kRows, columns <= kColumns.
// Sums are kept in `Sum`, which is float or double. Each finished piece of a row goes once to
// store(row, first, last, values), whose `values` are those of the columns [first, last). kDepth is how much of the depth
// is held close by at a time.
//
// On a GPU the block's threads call it together, 256 or more: pieces of both operands lie in shared memory, and each of
// 256 threads has some elements of the tile. On the host one thread packs a piece of `b` into strips of vectors, and a
// micro-kernel keeps kMicroRows rows of two vectors of sums in registers. Pieces of the depth are summed apart and then
// added, so that errors do not grow with the whole depth. `a` is copied only where it is of another type or its layout
// would defeat the cache.
#pragma once

#include "numbers.h"

// Rows of each of `down` tiles of at most `most`: on the host as even as whole micro-kernels allow.
#if MB_GPU
#define MB_EVEN_ROWS(rows, down, most) (most)
#else
#define MB_EVEN_ROWS(rows, down, most) (((rows + down - 1) / down + kMicroRows - 1) / kMicroRows * kMicroRows)
#endif

template <class T>
struct mb_matrix {
  const T* data;
  mb_i64 row, column;  // strides
};

#if MB_GPU
template <class Sum, int kRows, int kColumns, int kDepth, class A, class B, class Store>
MB_FN void mb_tile_product(mb_matrix<A> a, mb_matrix<B> b, int rows, int columns, mb_i64 depth, const Store& store) {
  // A thread has kPerRow x kPerColumn elements, kAcross threads apart so that neighbours read and write neighbours.
  constexpr int kAcross = 16, kDown = 16, kThreads = kAcross * kDown;
  constexpr int kPerRow = kRows / kDown, kPerColumn = kColumns / kAcross;
  static_assert(kRows % kDown == 0 && kColumns % kAcross == 0, "a tile is a multiple of 16 x 16");
  constexpr int kPiece = kDepth < 16 ? kDepth : 16;  // of what shared memory holds, whatever suits a cache
  __shared__ Sum a_piece[kPiece][kRows + 1];
  __shared__ Sum b_piece[kPiece][kColumns];
  const int thread = int(threadIdx.x), across = thread % kAcross, down = thread / kAcross;
  // Neighbouring threads load along whichever dimension is dense.
  const bool a_along_depth = a.column <= a.row, b_along_depth = b.row < b.column;
  Sum sums[kPerRow][kPerColumn];
#pragma unroll
  for (int i = 0; i < kPerRow; i++)
#pragma unroll
    for (int j = 0; j < kPerColumn; j++) sums[i][j] = Sum(0);
  for (mb_i64 start = 0; start < depth; start += kPiece) {
    for (int i = thread; i < kRows * kPiece; i += int(blockDim.x)) {
      const int row = a_along_depth ? i / kPiece : i % kRows, k = a_along_depth ? i % kPiece : i / kRows;
      const bool inside = row < rows && start + k < depth;
      a_piece[k][row] = inside ? Sum(mb_load(a.data[row * a.row + (start + k) * a.column])) : Sum(0);
    }
    for (int i = thread; i < kColumns * kPiece; i += int(blockDim.x)) {
      const int column = b_along_depth ? i / kPiece : i % kColumns, k = b_along_depth ? i % kPiece : i / kColumns;
      const bool inside = column < columns && start + k < depth;
      b_piece[k][column] = inside ? Sum(mb_load(b.data[(start + k) * b.row + column * b.column])) : Sum(0);
    }
    __syncthreads();
    if (thread < kThreads) {
#pragma unroll 8
      for (int k = 0; k < kPiece; k++) {
        Sum of_a[kPerRow], of_b[kPerColumn];
#pragma unroll
        for (int i = 0; i < kPerRow; i++) of_a[i] = a_piece[k][down + i * kDown];
#pragma unroll
        for (int j = 0; j < kPerColumn; j++) of_b[j] = b_piece[k][across + j * kAcross];
#pragma unroll
        for (int i = 0; i < kPerRow; i++)
#pragma unroll
          for (int j = 0; j < kPerColumn; j++) sums[i][j] += of_a[i] * of_b[j];
      }
    }
    __syncthreads();
  }
  if (thread >= kThreads) return;
#pragma unroll
  for (int i = 0; i < kPerRow; i++)
#pragma unroll
    for (int j = 0; j < kPerColumn; j++) {
      const int row = down + i * kDown, column = across + j * kAcross;
      if (row < rows && column < columns) store(row, column, column + 1, &sums[i][j]);
    }
}
#else
#ifdef __AVX512F__
enum { kVectorBytes = 64, kMicroRows = 8 };
#else
enum { kVectorBytes = 32, kMicroRows = 4 };  // 16 registers
#endif

template <class T>
struct mb_tile_vector {
  enum { kLanes = kVectorBytes / sizeof(T) };
  typedef T type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// kRows rows of kVectors vectors: out (kRows, width) = or += a (kRows, depth) x strip (depth, kVectors * lanes), whose rows
// are `apart`.
template <class Sum, int kRows, int kVectors>
static __attribute__((noinline)) void mb_micro_product(mb_matrix<Sum> a, const Sum* strip, mb_i64 apart, mb_i64 depth,
                                                       Sum* out, mb_i64 width, bool first) {
  constexpr int kLanes = mb_tile_vector<Sum>::kLanes;
  typedef typename mb_tile_vector<Sum>::type vector;
  vector sums[kRows][kVectors] = {};
  for (mb_i64 k = 0; k < depth; k++) {
    vector of_b[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) of_b[v] = *reinterpret_cast<const vector*>(strip + k * apart + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; r++) {
      const Sum of_a = a.data[r * a.row + k * a.column];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) sums[r][v] += of_a * of_b[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) {
      vector* to = reinterpret_cast<vector*>(out + r * width + v * kLanes);
      *to = first ? sums[r][v] : *to + sums[r][v];
    }
}

// All rows against one strip; what is left of them in smaller groups.
template <class Sum, int kVectors>
static void mb_strip_product(mb_matrix<Sum> a, const Sum* strip, mb_i64 apart, int rows, mb_i64 depth, Sum* out,
                             mb_i64 width, bool first) {
  int row = 0;
  const auto at = [&](int r) { return mb_matrix<Sum>{a.data + r * a.row, a.row, a.column}; };
  for (; row + kMicroRows <= rows; row += kMicroRows)
    mb_micro_product<Sum, kMicroRows, kVectors>(at(row), strip, apart, depth, out + row * width, width, first);
  for (; row + 4 <= rows; row += 4)
    mb_micro_product<Sum, 4, kVectors>(at(row), strip, apart, depth, out + row * width, width, first);
  for (; row < rows; row++)
    mb_micro_product<Sum, 1, kVectors>(at(row), strip, apart, depth, out + row * width, width, first);
}

#ifndef __clang__
// Columns become rows: in step d, blocks of d x d off the diagonal are exchanged.
template <class T, class Index>
MB_FN void mb_transpose(typename mb_tile_vector<T>::type (&rows)[mb_tile_vector<T>::kLanes]) {
  constexpr int kLanes = mb_tile_vector<T>::kLanes;
  typedef Index indices __attribute__((vector_size(kVectorBytes)));
#pragma GCC unroll 4
  for (int d = 1; d < kLanes; d *= 2) {
    indices low, high;
    for (int j = 0; j < kLanes; j++) {
      low[j] = j & d ? kLanes + j - d : j;
      high[j] = j & d ? kLanes + j : j + d;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++)
      if (!(i & d)) {
        const auto a = rows[i], b = rows[i + d];
        rows[i] = __builtin_shuffle(a, b, low);
        rows[i + d] = __builtin_shuffle(a, b, high);
      }
  }
}

// kLanes columns, each of them dense, to rows of a strip kWidth wide. Returns how much of the depth it has done.
template <class Sum, int kWidth, class B>
static mb_i64 mb_pack_dense_columns(const B* columns, mb_i64 apart, mb_i64 depth, Sum* strip) {
  constexpr int kLanes = mb_tile_vector<Sum>::kLanes;
  mb_i64 k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    typename mb_tile_vector<Sum>::type rows[kLanes];
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; c++) {
      Sum line[kLanes];
      MB_SIMD()
      for (int i = 0; i < kLanes; i++) line[i] = Sum(mb_load(columns[c * apart + k + i]));
      __builtin_memcpy(&rows[c], line, sizeof(line));
    }
    if constexpr (sizeof(Sum) == 4)
      mb_transpose<Sum, int>(rows);
    else
      mb_transpose<Sum, mb_i64>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; i++) __builtin_memcpy(strip + (k + i) * kWidth, &rows[i], sizeof(rows[i]));
  }
  return k;
}
#else
template <class Sum, int kWidth, class B>
static mb_i64 mb_pack_dense_columns(const B*, mb_i64, mb_i64, Sum*) {
  return 0;
}
#endif

// Columns of b as a strip (depth, kWidth), the missing ones zero.
template <class Sum, int kWidth, class B>
static __attribute__((noinline)) void mb_pack_strip(mb_matrix<B> b, int columns, mb_i64 depth, Sum* strip) {
  constexpr int kLanes = mb_tile_vector<Sum>::kLanes;
  const int count = columns < kWidth ? columns : kWidth;
  if (count == kWidth && b.column == 1) {
    for (mb_i64 k = 0; k < depth; k++) {
      const B* row = b.data + k * b.row;
      MB_SIMD()
      for (int c = 0; c < kWidth; c++) strip[k * kWidth + c] = Sum(mb_load(row[c]));
    }
    return;
  }
  int column = 0;
  for (; b.row == 1 && column + kLanes <= count; column += kLanes) {
    const B* columns_from = b.data + column * b.column;
    mb_i64 k = mb_pack_dense_columns<Sum, kWidth>(columns_from, b.column, depth, strip + column);
    for (; k < depth; k++)
      for (int c = 0; c < kLanes; c++) strip[k * kWidth + column + c] = Sum(mb_load(columns_from[k + c * b.column]));
  }
  for (mb_i64 k = 0; k < depth; k++) {
    const B* row = b.data + k * b.row;
    for (int c = column; c < count; c++) strip[k * kWidth + c] = Sum(mb_load(row[c * b.column]));
    for (int c = count; c < kWidth; c++) strip[k * kWidth + c] = Sum(0);
  }
}

// A piece of a in the type of the sums, dense along whichever dimension it was dense.
template <class Sum, class A>
static __attribute__((noinline)) mb_matrix<Sum> mb_converted(mb_matrix<A> a, int rows, mb_i64 depth, Sum* to) {
  if (a.column == 1) {
    for (int r = 0; r < rows; r++) {
      MB_SIMD()
      for (mb_i64 k = 0; k < depth; k++) to[r * depth + k] = Sum(mb_load(a.data[r * a.row + k]));
    }
    return {to, depth, 1};
  }
  for (mb_i64 k = 0; k < depth; k++) {
    MB_SIMD()
    for (int r = 0; r < rows; r++) to[k * rows + r] = Sum(mb_load(a.data[r * a.row + k * a.column]));
  }
  return {to, 1, rows};
}

template <class T, class U>
struct mb_same {
  enum { value = false };
};
template <class T>
struct mb_same<T, T> {
  enum { value = true };
};

template <class Sum, int kRows, int kColumns, int kDepth, class A, class B, class Store>
MB_FN void mb_tile_product(mb_matrix<A> a, mb_matrix<B> b, int rows, int columns, mb_i64 depth, const Store& store) {
  constexpr int kLanes = mb_tile_vector<Sum>::kLanes, kWidth = 2 * kLanes;
  static_assert(kColumns % kWidth == 0, "a tile has whole strips");
  alignas(64) Sum tile[kRows * kColumns];
  alignas(64) Sum strip[kDepth * kWidth];
  alignas(64) Sum converted[kRows * kDepth];
  // Columns of a this far apart fall into few sets of a cache, and push one another out.
  const bool crowded = a.row == 1 && a.column * mb_i64(sizeof(A)) % 4096 == 0;
  mb_i64 start = 0;
  do {
    const bool first = start == 0;
    const mb_i64 piece = depth - start < kDepth ? depth - start : kDepth;
    const mb_matrix<A> from{a.data + start * a.column, a.row, a.column};
    mb_matrix<Sum> left;
    if constexpr (mb_same<A, Sum>::value)
      left = crowded ? mb_converted<Sum>(from, rows, piece, converted) : from;
    else
      left = mb_converted<Sum>(from, rows, piece, converted);
    for (int column = 0; column < columns; column += kWidth) {
      const int count = columns - column;
      const mb_matrix<B> right{b.data + start * b.row + column * b.column, b.row, b.column};
      if constexpr (mb_same<B, Sum>::value)
        if (rows < kMicroRows && b.column == 1 && count >= kWidth) {  // too few rows to repay a copy
          mb_strip_product<Sum, 2>(left, right.data, right.row, rows, piece, tile + column, kColumns, first);
          continue;
        }
      if (count <= kLanes) {
        mb_pack_strip<Sum, kLanes>(right, count, piece, strip);
        mb_strip_product<Sum, 1>(left, strip, kLanes, rows, piece, tile + column, kColumns, first);
      } else {
        mb_pack_strip<Sum, kWidth>(right, count, piece, strip);
        mb_strip_product<Sum, 2>(left, strip, kWidth, rows, piece, tile + column, kColumns, first);
      }
    }
    start += piece;
  } while (start < depth);
  for (int row = 0; row < rows; row++) store(row, 0, columns, tile + row * kColumns);
}
#endif
