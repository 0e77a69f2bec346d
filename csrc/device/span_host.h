// The C++ compiler's half of span.h: arrays stored as T are used in place, others go through a buffer, a tile at a
// time.
#pragma once

#include <algorithm>
#include <utility>

namespace mybackend::device {

namespace detail {

// One copy a functor, whether its arrays are used in place or come from buffers.
template <unsigned Reads, unsigned Writes, class T, int N, class F, size_t... K>
MB_DEVICE_NOINLINE void run_span(T* const* arrays, int64_t n, F f, std::index_sequence<K...>) {
  T* const p[N] = {arrays[K]...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) {
    T v[N] = {};
    ((Reads >> K & 1 ? void(v[K] = p[K][i]) : void()), ...);
    f(v);
    ((Writes >> K & 1 ? void(p[K][i] = v[K]) : void()), ...);
  }
}

// Calls f(elements as T, how many) for the whole of array k, piece by piece.
template <class T, int N, class F>
void each_piece(const Span<N>& span, int k, F f) {
  if (span.dtype[k] == dtype_of<T>) return f(reinterpret_cast<const T*>(span.data[k]), span.length);
  alignas(64) T buffer[kTile];
  const int64_t size = size_of(span.dtype[k]);
  for (int64_t begin = 0; begin < span.length; begin += kTile) {
    const int64_t n = std::min(kTile, span.length - begin);
    load_row(buffer, span.data[k] + begin * size, size, n, span.dtype[k]);
    f(static_cast<const T*>(buffer), n);
  }
}

template <unsigned Reads, unsigned Writes, class T, int N, class F>
MB_DEVICE_NOINLINE void run_converted(const Span<N>& span, const F& f) {
  alignas(64) T buffers[N][kTile];
  for (int64_t begin = 0; begin < span.length; begin += kTile) {
    const int64_t n = std::min(kTile, span.length - begin);
    T* arrays[N];
    for (int k = 0; k < N; k++) {
      const int64_t size = size_of(span.dtype[k]);
      char* const at = span.data[k] + begin * size;
      const bool ready = span.dtype[k] == dtype_of<T>;
      arrays[k] = ready ? reinterpret_cast<T*>(at) : buffers[k];
      if (!ready && Reads >> k & 1) load_row(buffers[k], at, size, n, span.dtype[k]);
    }
    run_span<Reads, Writes, T, N>(arrays, n, f, std::make_index_sequence<N>{});
    for (int k = 0; k < N; k++) {
      const int64_t size = size_of(span.dtype[k]);
      if (arrays[k] == buffers[k] && Writes >> k & 1)
        store_row(span.data[k] + begin * size, static_cast<const T*>(buffers[k]), size, n, span.dtype[k]);
    }
  }
}

}  // namespace detail

template <unsigned Reads, unsigned Writes, class T, int N, class F>
void each_in_span(Block /*block*/, const Span<N>& span, const F& f) {
  T* arrays[N];
  bool ready = true;
  for (int k = 0; k < N; k++) {
    arrays[k] = reinterpret_cast<T*>(span.data[k]);
    ready = ready && span.dtype[k] == dtype_of<T>;
  }
  if (!ready) return detail::run_converted<Reads, Writes, T>(span, f);
  detail::run_span<Reads, Writes, T, N>(arrays, span.length, f, std::make_index_sequence<N>{});
}

template <class T, int N, class F>
T sum_in_span(Block block, const Span<N>& span, int k, const F& f) {
  T total = T(0);
  detail::each_piece<T>(span, k,
                        [&](const T* x, int64_t n) { total += block.sum<T>(n, [&](int64_t i) { return f(x[i]); }); });
  return total;
}

template <class T, int N, class F>
T max_in_span(Block block, const Span<N>& span, int k, const F& f) {
  T peak{};
  bool any = false;
  detail::each_piece<T>(span, k, [&](const T* x, int64_t n) {
    const T here = block.max<T>(n, [&](int64_t i) { return f(x[i]); });
    peak = any && (peak != peak || peak > here) ? peak : here;
    any = true;
  });
  return peak;
}

template <class T>
T load_one(const void* data, DType dtype) {
  T value;
  load_row(&value, static_cast<const char*>(data), size_of(dtype), 1, dtype);
  return value;
}

template <class T>
void store_one(Block /*block*/, void* data, T value, DType dtype) {
  store_row(static_cast<char*>(data), static_cast<const T*>(&value), size_of(dtype), 1, dtype);
}

}  // namespace mybackend::device
