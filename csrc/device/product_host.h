// product.h for the C++ compiler: one thread, vectors across lanes, sums in registers.
#pragma once

namespace mybackend::device {
namespace host_product {

#if defined(__AVX512F__)
constexpr int kVector = 16;
constexpr int kRows = 8;
#elif defined(__AVX__)
constexpr int kVector = 8;
constexpr int kRows = 4;
#else
constexpr int kVector = 4;
constexpr int kRows = 4;
#endif
typedef float Vector __attribute__((vector_size(kVector * 4)));
typedef int32_t Indices __attribute__((vector_size(kVector * 4)));
typedef float Unaligned __attribute__((vector_size(kVector * 4), aligned(4), may_alias));

MB_DEVICE Vector load(const float* from) {
  return *reinterpret_cast<const Unaligned*>(from);
}
MB_DEVICE void store(float* to, Vector value) {
  *reinterpret_cast<Unaligned*>(to) = value;
}

// R rows by V vectors of the result.
template <int R, int V, int N, bool Add>
MB_DEVICE void tile(int64_t k, const float* a, int64_t row, int64_t column, const float* b, float* c) {
  Vector sum[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) sum[r][v] = Add ? load(c + r * N + v * kVector) : Vector{};
  for (int64_t at = 0; at < k; at++) {
    Vector right[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) right[v] = load(b + v * kVector);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const float left = a[r * row];
#pragma GCC unroll 4
      for (int v = 0; v < V; v++) sum[r][v] += left * right[v];
    }
    a += column;
    b += N;
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int v = 0; v < V; v++) store(c + r * N + v * kVector, sum[r][v]);
}

template <int V, int N, bool Add>
MB_DEVICE_NOINLINE void columns(int64_t m, int64_t k, const float* a, int64_t row, int64_t column, const float* b,
                                float* c) {
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) tile<kRows, V, N, Add>(k, a + i * row, row, column, b, c + i * N);
  for (; i + 2 <= m; i += 2) tile<2, V, N, Add>(k, a + i * row, row, column, b, c + i * N);
  if (i < m) tile<1, V, N, Add>(k, a + i * row, row, column, b, c + i * N);
}

// Transposes a square of kVector x kVector: rows of stride `from_stride` become rows of stride `to_stride`, times
// `scale`. Stage s swaps the off-diagonal blocks of side s of each pair of rows s apart.
template <int Stage>
MB_DEVICE void swap_blocks(Vector* rows) {
  Indices first, second;
  for (int lane = 0; lane < kVector; lane++) {
    first[lane] = (lane & Stage) != 0 ? kVector + lane - Stage : lane;
    second[lane] = (lane & Stage) != 0 ? kVector + lane : lane + Stage;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kVector; r++) {
    if ((r & Stage) != 0) continue;
    const Vector a = rows[r], b = rows[r + Stage];
    rows[r] = __builtin_shuffle(a, b, first);
    rows[r + Stage] = __builtin_shuffle(a, b, second);
  }
}

MB_DEVICE_NOINLINE inline void transpose_square(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Vector rows[kVector];
#pragma GCC unroll 16
  for (int r = 0; r < kVector; r++) rows[r] = load(from + r * from_stride);
  swap_blocks<1>(rows);
  swap_blocks<2>(rows);
  if constexpr (kVector >= 8) swap_blocks<4>(rows);
  if constexpr (kVector >= 16) swap_blocks<8>(rows);
#pragma GCC unroll 16
  for (int r = 0; r < kVector; r++) store(to + r * to_stride, rows[r]);
}

// to[j][i] = from[i][j] for i < rows, j < columns.
inline void transpose(const float* from, int64_t from_stride, int64_t rows, int64_t columns, float* to,
                      int64_t to_stride) {
  const int64_t whole_rows = rows / kVector * kVector, whole_columns = columns / kVector * kVector;
  for (int64_t i = 0; i < whole_rows; i += kVector)
    for (int64_t j = 0; j < whole_columns; j += kVector)
      transpose_square(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
      to[j * to_stride + i] = from[i * from_stride + j];
}

}  // namespace host_product

template <int N, bool Add>
MB_DEVICE void product(Block /*block*/, int64_t m, int64_t k, Factor<float> a, const float* b, float* c,
                       int64_t lanes = N) {
  using namespace host_product;
  static_assert(N % kVector == 0);
  constexpr int kVectors = N / kVector >= 2 ? 2 : 1;
  for (int64_t lane = 0; lane < lanes; lane += kVectors * kVector)
    columns<kVectors, N, Add>(m, k, a.data, a.row, a.column, b + lane, c + lane);
}

template <class S>
constexpr int64_t staging(int64_t elements) {
  return std::is_same_v<S, float> ? 1 : elements;
}

template <class S>
MB_DEVICE Factor<float> stage(Block block, const S* rows, int64_t stride, int64_t count, int64_t width, float* buffer) {
  if constexpr (std::is_same_v<S, float>) {
    return {rows, stride, 1};
  } else {
    for (int64_t i = 0; i < count; i++) {
      const S* from = rows + i * stride;
      float* to = buffer + i * width;
      block.each(width, [&](int64_t d) { to[d] = widen(from[d]); });
    }
    return {buffer, width, 1};
  }
}

// lanes[d][i] = scale * rows[i][d] for i < count; the other lanes are zero.
template <int N, class S>
MB_DEVICE void to_lanes(Block block, const S* rows, int64_t stride, int64_t count, int64_t width, float scale,
                        float* lanes) {
  if constexpr (std::is_same_v<S, float>) {
    host_product::transpose(rows, stride, count, width, lanes, N);
  } else {
    for (int64_t i = 0; i < count; i++)
      for (int64_t d = 0; d < width; d++) lanes[d * N + i] = widen(rows[i * stride + d]);
  }
  for (int64_t d = 0; d < width; d++) {
    float* line = lanes + d * N;
    block.each(N, [&](int64_t i) { line[i] = i < count ? line[i] * scale : 0.0f; });
  }
}

// rows[i][d] = scale[i] * lanes[d][i] for i < count.
template <int N, class S>
MB_DEVICE void from_lanes(Block block, const float* lanes, const float* scale, int64_t count, int64_t width, S* rows,
                          int64_t stride) {
  constexpr int64_t kSide = host_product::kVector;
  alignas(64) float square[kSide * kSide];
  for (int64_t i = 0; i < count; i += kSide)
    for (int64_t d = 0; d < width; d += kSide) {
      const int64_t high = count - i < kSide ? count - i : kSide, wide = width - d < kSide ? width - d : kSide;
      host_product::transpose(lanes + d * N + i, N, wide, high, square, kSide);
      for (int64_t r = 0; r < high; r++) {
        const float* from = square + r * kSide;
        const float by = scale[i + r];
        S* to = rows + (i + r) * stride + d;
        block.each(wide, [&](int64_t e) { to[e] = narrow<S>(by * from[e]); });
      }
    }
}

}  // namespace mybackend::device
