// The C++ compiler's half of tile.h.
#pragma once

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "csrc/device/widen.h"

namespace mybackend::device {

constexpr int64_t kPointwiseBlock = 8192;
constexpr int64_t kTile = 512;     // elements gathered at a time; four buffers of them stay in the first-level cache
constexpr int64_t kLongRow = 128;  // rows of at least this many elements are worth a tile of their own

// Converts `n` elements between an array of stored type `dtype` with a stride in bytes and a contiguous array of T.
// Defined, for every T a kernel computes in and every half type, in csrc/kernels/convert.cu.
template <class T>
void load_row(T* to, const char* from, int64_t stride, int64_t n, DType dtype);
template <class T>
void store_row(char* to, const T* from, int64_t stride, int64_t n, DType dtype);

// True for an operand that is one value everywhere.
template <int N>
bool is_scalar(const Operands<N>& o, int k) {
  return o.data[k] == nullptr || (o.ndim == 1 && o.strides[k][0] == 0);
}

// Where a tile begins: the element's position in iteration order and, unless the operands are `flat` (contiguous or
// scalars, so that nobody asks), its index in every dimension.
template <int N>
struct Cursor {
  const Operands<N>& operands;
  int64_t position;
  bool flat;
  int64_t index[kMaxDims];

  Cursor(const Operands<N>& o, int64_t begin) : operands(o), position(begin), flat(true) {
    for (int k = 0; k < N; k++) flat = flat && (o.contiguous[k] || is_scalar(o, k));
    if (flat) return;
    for (int d = 0; d < o.ndim; d++) {
      index[d] = begin % o.sizes[d];
      begin /= o.sizes[d];
    }
  }

  void advance(int64_t n) {
    position += n;
    if (flat) return;
    for (int d = 0; d < operands.ndim && n > 0; d++) {
      index[d] += n;
      if (index[d] < operands.sizes[d]) return;
      n = index[d] / operands.sizes[d];
      index[d] %= operands.sizes[d];
    }
  }

  char* address(int k) const {
    char* at = operands.data[k];
    for (int d = 0; d < operands.ndim; d++) at += index[d] * operands.strides[k][d];
    return at;
  }
};

// Calls f(address, length) for each run of `n` elements of operand k, from the cursor on, that lie along dimension 0.
template <int N, class F>
void each_run(const Cursor<N>& from, int k, int64_t n, F f) {
  const Operands<N>& o = from.operands;
  if (o.ndim == 0) return f(o.data[k], n);
  Cursor<N> cursor = from;
  while (n > 0) {
    const int64_t length = std::min(n, o.sizes[0] - cursor.index[0]);
    f(cursor.address(k), length);
    n -= length;
    if (n > 0) cursor.advance(length);
  }
}

template <class T>
struct Tile {
  bool spread = false;  // true once `buffer` holds a scalar, which then serves every tile
  alignas(64) T buffer[kTile];
  Tile() {}  // leaves `buffer` as it is: clearing it would cost more than a small operation
};

// True where elements [cursor, cursor + n) of operand k lie one after the other and are stored as T.
template <class T, int N>
bool lies_ready(const Cursor<N>& cursor, int k, int64_t n) {
  const Operands<N>& o = cursor.operands;
  if (o.dtype[k] != dtype_of<T> || o.data[k] == nullptr) return false;
  if (o.contiguous[k]) return true;
  return o.strides[k][0] == int64_t(sizeof(T)) && cursor.index[0] + n <= o.sizes[0];
}

template <class T, int N>
const T* read_tile(const Cursor<N>& cursor, int k, int64_t n, Tile<T>& tile) {
  const Operands<N>& o = cursor.operands;
  if (lies_ready<T>(cursor, k, n))
    return reinterpret_cast<const T*>(o.contiguous[k] ? o.data[k] + cursor.position * int64_t(sizeof(T))
                                                      : cursor.address(k));
  if (!o.contiguous[k] && is_scalar(o, k)) {
    const char* value = o.data[k] == nullptr ? o.immediate[k] : o.data[k];
    if (!tile.spread) load_row(tile.buffer, value, 0, std::min(kTile, o.numel), o.dtype[k]);
    tile.spread = true;
    return tile.buffer;
  }
  T* to = tile.buffer;
  if (o.contiguous[k]) {
    const int64_t size = size_of(o.dtype[k]);
    load_row(to, o.data[k] + cursor.position * size, size, n, o.dtype[k]);
    return to;
  }
  each_run(cursor, k, n, [&](const char* at, int64_t length) {
    load_row(to, at, o.strides[k][0], length, o.dtype[k]);
    to += length;
  });
  return tile.buffer;
}

template <class T, int N>
void write_tile(const Cursor<N>& cursor, int k, int64_t n, const T* from) {
  const Operands<N>& o = cursor.operands;
  if (o.contiguous[k]) {
    const int64_t size = size_of(o.dtype[k]);
    return store_row(o.data[k] + cursor.position * size, from, size, n, o.dtype[k]);
  }
  each_run(cursor, k, n, [&](char* at, int64_t length) {
    store_row(at, from, o.strides[k][0], length, o.dtype[k]);
    from += length;
  });
}

// bfloat16 is widened inside the loop where it lies ready: a shift and a rounding cost less than a pass through a
// buffer.
template <class T>
using Narrow = std::conditional_t<std::is_same_v<T, float>, bfloat16, T>;

template <class T, int N>
Narrow<T>* narrow_tile(const Cursor<N>& cursor, int k) {
  const Operands<N>& o = cursor.operands;
  return reinterpret_cast<Narrow<T>*>(o.contiguous[k] ? o.data[k] + cursor.position * int64_t(sizeof(Narrow<T>))
                                                      : cursor.address(k));
}

template <class Out, class... In, class F>
void run_narrow(int64_t n, const F& f, Narrow<Out>* out, const Narrow<In>* __restrict__... a) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) out[i] = narrow<Narrow<Out>>(f(widen(a[i])...));
}

// Does `n` elements from the cursor on if those computed in float lie ready as bfloat16, all others as they are
// computed in; of two inputs one may be a scalar.
template <class Out, class... In, size_t... I, class F>
bool do_narrow(const Cursor<1 + sizeof...(In)>& cursor, int64_t n, const F& f, std::index_sequence<I...>) {
  if (!lies_ready<Narrow<Out>>(cursor, 0, n)) return false;
  const bool ready[] = {lies_ready<Narrow<In>>(cursor, I + 1, n)...};
  Narrow<Out>* out = narrow_tile<Out>(cursor, 0);
  if ((ready[I] && ...)) {
    run_narrow<Out, In...>(n, f, out, narrow_tile<In>(cursor, I + 1)...);
    return true;
  }
  if constexpr (sizeof...(In) == 2 && (std::is_same_v<In, float> && ...)) {
    const Operands<3>& o = cursor.operands;
    for (int k = 1; k <= 2; k++) {
      if (!ready[2 - k] || o.contiguous[k] || !is_scalar(o, k)) continue;
      float value;
      load_row(&value, o.data[k] == nullptr ? o.immediate[k] : o.data[k], 0, 1, o.dtype[k]);
      const bfloat16* in = narrow_tile<float>(cursor, 3 - k);
      k == 1 ? run_narrow<Out, float>(
                   n, [&, value](float x) { return f(value, x); }, out, in)
             : run_narrow<Out, float>(n, [&, value](float x) { return f(x, value); }, out, in);
      return true;
    }
  }
  return false;
}

template <bool Indexed, class Out, class... In, size_t... I, class F>
void each_tile(const Operands<1 + sizeof...(In)>& o, int64_t begin, int64_t end, const F& f,
               std::index_sequence<I...>) {
  Cursor<1 + sizeof...(In)> cursor(o, begin);
  std::tuple<Tile<In>...> tiles;
  Tile<Out> result;
  constexpr bool kWidens = !Indexed && (std::is_same_v<Out, float> || ... || std::is_same_v<In, float>);
  const bool widens = kWidens && (o.dtype[0] == DType::BFloat16 || ((o.dtype[I + 1] == DType::BFloat16) || ...));
  while (cursor.position < end) {
    int64_t n = end - cursor.position;
    if (!cursor.flat && o.sizes[0] >= kLongRow) n = std::min(n, o.sizes[0] - cursor.index[0]);
    if constexpr (kWidens) {
      if (widens && do_narrow<Out, In...>(cursor, n, f, std::index_sequence<I...>{})) {
        cursor.advance(n);
        continue;
      }
    }
    const bool ready = lies_ready<Out>(cursor, 0, n);
    if (!(ready && (lies_ready<In>(cursor, I + 1, n) && ...))) n = std::min(n, kTile);
    Out* out = lies_ready<Out>(cursor, 0, n)
                   ? reinterpret_cast<Out*>(o.contiguous[0] ? o.data[0] + cursor.position * int64_t(sizeof(Out))
                                                            : cursor.address(0))
                   : result.buffer;
    const std::tuple<const In*...> in{read_tile<In>(cursor, I + 1, n, std::get<I>(tiles))...};
    [&](const In* __restrict__... a) {
      if constexpr (Indexed) {
        const int64_t position = cursor.position;
#pragma GCC ivdep
        for (int64_t i = 0; i < n; i++) out[i] = f(position + i, a[i]...);
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; i++) out[i] = f(a[i]...);
      }
    }(std::get<I>(in)...);
    if (out == result.buffer) write_tile<Out>(cursor, 0, n, result.buffer);
    cursor.advance(n);
  }
}

template <class T, int N>
void store_block(Block block, const Operands<N>& o, const T* values) {
  const int64_t begin = block.index * kElementsPerBlock;
  write_tile<T>(Cursor<N>(o, begin), 0, std::min(kElementsPerBlock, o.numel - begin), values);
}

template <bool Indexed, class Out, class... In, class F>
void each_in_block(Block block, const Operands<1 + sizeof...(In)>& o, const F& f) {
  const int64_t begin = block.index * kPointwiseBlock;
  each_tile<Indexed, Out, In...>(o, begin, std::min(begin + kPointwiseBlock, o.numel), f,
                                 std::index_sequence_for<In...>{});
}

}  // namespace mybackend::device
