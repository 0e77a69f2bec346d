// nvcc's half of span.h, and the N-thread build's: arrays of one stored type in 16-byte accesses; otherwise one element
// at a time.
#pragma once

namespace mybackend::device {

namespace detail {

template <unsigned Reads, unsigned Writes, class T, class F, int N>
MB_DEVICE void run_converted(Block block, const Span<N>& span, const F& f) {
  block.each(span.length, [&](int64_t i) {
    T v[N] = {};
#pragma unroll
    for (int k = 0; k < N; k++)
      if (Reads >> k & 1) v[k] = fetch<T>(span.data[k] + i * size_of(span.dtype[k]), span.dtype[k]);
    f(v);
#pragma unroll
    for (int k = 0; k < N; k++)
      if (Writes >> k & 1) put<T>(span.data[k] + i * size_of(span.dtype[k]), v[k], span.dtype[k]);
  });
}

// All arrays are stored as S and aligned to a pack.
template <unsigned Reads, unsigned Writes, class T, class S, class F, int N>
MB_DEVICE void run_packed(Block block, const Span<N>& span, const F& f) {
  constexpr int V = sizeof(S) >= 16 ? 1 : 16 / sizeof(S);
  const int64_t packs = span.length / V;
  block.each(packs, [&](int64_t i) {
    Pack<S, V> pack[N];
#pragma unroll
    for (int k = 0; k < N; k++)
      if (Reads >> k & 1) pack[k] = reinterpret_cast<const Pack<S, V>*>(span.data[k])[i];
#pragma unroll
    for (int e = 0; e < V; e++) {
      T v[N] = {};
#pragma unroll
      for (int k = 0; k < N; k++)
        if (Reads >> k & 1) v[k] = convert<T>(pack[k].value[e]);
      f(v);
#pragma unroll
      for (int k = 0; k < N; k++)
        if (Writes >> k & 1) pack[k].value[e] = convert<S>(v[k]);
    }
#pragma unroll
    for (int k = 0; k < N; k++)
      if (Writes >> k & 1) reinterpret_cast<Pack<S, V>*>(span.data[k])[i] = pack[k];
  });
  Span<N> rest = span;
  rest.length = span.length - packs * V;
  for (int k = 0; k < N; k++) rest.data[k] += packs * V * int64_t(sizeof(S));
  run_converted<Reads, Writes, T>(block, rest, f);
}

}  // namespace detail

template <unsigned Reads, unsigned Writes, class T, int N, class F>
MB_DEVICE void each_in_span(Block block, const Span<N>& span, const F& f) {
  bool alike = true;
#pragma unroll
  for (int k = 0; k < N; k++)
    alike = alike && span.dtype[k] == span.dtype[0] && reinterpret_cast<uintptr_t>(span.data[k]) % 16 == 0;
  if (alike && span.dtype[0] == dtype_of<T>) return detail::run_packed<Reads, Writes, T, T>(block, span, f);
  if constexpr (std::is_same_v<T, float>) {
    if (alike && span.dtype[0] == DType::Half) return detail::run_packed<Reads, Writes, T, half>(block, span, f);
    if (alike && span.dtype[0] == DType::BFloat16)
      return detail::run_packed<Reads, Writes, T, bfloat16>(block, span, f);
  }
  detail::run_converted<Reads, Writes, T>(block, span, f);
}

template <class T, int N, class F>
MB_DEVICE T sum_in_span(Block block, const Span<N>& span, int k, const F& f) {
  const char* data = span.data[k];
  const DType dtype = span.dtype[k];
  return block.sum<T>(span.length, [&](int64_t i) { return f(fetch<T>(data + i * size_of(dtype), dtype)); });
}

template <class T, int N, class F>
MB_DEVICE T max_in_span(Block block, const Span<N>& span, int k, const F& f) {
  const char* data = span.data[k];
  const DType dtype = span.dtype[k];
  return block.max<T>(span.length, [&](int64_t i) { return f(fetch<T>(data + i * size_of(dtype), dtype)); });
}

template <class T>
MB_DEVICE T load_one(const void* data, DType dtype) {
  return fetch<T>(static_cast<const char*>(data), dtype);
}

template <class T>
MB_DEVICE void store_one(Block block, void* data, T value, DType dtype) {
  if (block.thread == 0) put<T>(static_cast<char*>(data), value, dtype);
}

}  // namespace mybackend::device
