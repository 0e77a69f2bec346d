// product.h where a block has threads: each thread computes squares of 4 x 4 values.
#pragma once

namespace mybackend::device {

template <int N, bool Add, class S>
MB_DEVICE void product(Block block, int64_t m, int64_t k, Factor<S> a, const float* b, float* c, int64_t lanes = N) {
  constexpr int kSide = 4;
  static_assert(N % kSide == 0);
  const int64_t across = ceil_div(lanes, kSide), squares = ceil_div(m, kSide) * across;
  block.each(squares, [&](int64_t square) {
    const int64_t row = square / across * kSide, lane = square % across * kSide;
    const S* from[kSide];
    for (int i = 0; i < kSide; i++) from[i] = a.data + (row + i < m ? row + i : m - 1) * a.row;
    float sum[kSide][kSide] = {};
    for (int64_t at = 0; at < k; at++) {
      float left[kSide], right[kSide];
      for (int i = 0; i < kSide; i++) left[i] = widen(from[i][at * a.column]);
      for (int j = 0; j < kSide; j++) right[j] = b[at * N + lane + j];
      for (int i = 0; i < kSide; i++)
        for (int j = 0; j < kSide; j++) sum[i][j] += left[i] * right[j];
    }
    for (int i = 0; i < kSide && row + i < m; i++)
      for (int j = 0; j < kSide; j++) {
        float& to = c[(row + i) * N + lane + j];
        to = Add ? to + sum[i][j] : sum[i][j];
      }
  });
}

// lanes[d][i] = scale * rows[i][d] for i < count; the other lanes are zero.
template <int N, class S>
MB_DEVICE void to_lanes(Block block, const S* rows, int64_t stride, int64_t count, int64_t width, float scale,
                        float* lanes) {
  block.each(width * N, [&](int64_t e) {
    const int64_t i = e / width, d = e % width;
    lanes[d * N + i] = i < count ? scale * widen(rows[i * stride + d]) : 0.0f;
  });
}

// rows[i][d] = scale[i] * lanes[d][i] for i < count.
template <int N, class S>
MB_DEVICE void from_lanes(Block block, const float* lanes, const float* scale, int64_t count, int64_t width, S* rows,
                          int64_t stride) {
  block.each(width * count, [&](int64_t e) {
    const int64_t i = e / width, d = e % width;
    rows[i * stride + d] = narrow<S>(scale[i] * lanes[d * N + i]);
  });
}

// Number of floats `stage` needs for `elements` elements of S.
template <class S>
constexpr int64_t staging(int64_t /*elements*/) {
  return 1;
}

template <class S>
MB_DEVICE Factor<S> stage(Block /*block*/, const S* rows, int64_t stride, int64_t /*count*/, int64_t /*width*/,
                          float* /*buffer*/) {
  return {rows, stride, 1};
}

}  // namespace mybackend::device
