// Bodies of load_row and store_row for the host build; included by csrc/kernels/convert.cu only.
#pragma once

#if !defined(__CUDACC__)

#include <cstring>

#include "csrc/device/tile.h"
#include "csrc/device/widen.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace mybackend::device {
namespace {

template <class To>
void from_half(To* to, const half* from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<To, float>) {
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  alignas(32) float wide[8];
  for (; i + 8 <= n; i += 8) {
    _mm256_store_ps(wide, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    for (int j = 0; j < 8; j++) to[i + j] = convert<To>(wide[j]);
  }
#endif
  for (; i < n; i++) to[i] = convert<To>(float(from[i]));
}

template <class From>
void to_half(half* to, const From* from, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<From, float>) {
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  alignas(32) float wide[8];
  for (; i + 8 <= n; i += 8) {
    for (int j = 0; j < 8; j++) wide[j] = convert<float>(from[i + j]);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_load_ps(wide), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < n; i++) to[i] = half(convert<float>(from[i]));
}

template <class To, class From>
void load_as(To* to, const char* from, int64_t stride, int64_t n) {
  const From* in = reinterpret_cast<const From*>(from);
  if (stride == 0) {
    const To value = convert<To>(in[0]);
    for (int64_t i = 0; i < n; i++) to[i] = value;
  } else if (stride != int64_t(sizeof(From))) {
    for (int64_t i = 0; i < n; i++) to[i] = convert<To>(*reinterpret_cast<const From*>(from + i * stride));
  } else if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, size_t(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, half>) {
    from_half(to, in, n);
  } else if constexpr (std::is_same_v<From, bfloat16>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) to[i] = convert<To>(widen(in[i]));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) to[i] = convert<To>(in[i]);
  }
}

template <class To, class From>
void store_as(char* to, const From* from, int64_t stride, int64_t n) {
  To* out = reinterpret_cast<To*>(to);
  if (stride != int64_t(sizeof(To))) {
    for (int64_t i = 0; i < n; i++) *reinterpret_cast<To*>(to + i * stride) = convert<To>(from[i]);
  } else if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, size_t(n) * sizeof(To));
  } else if constexpr (std::is_same_v<To, half>) {
    to_half(out, from, n);
  } else if constexpr (std::is_same_v<To, bfloat16>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = narrow<bfloat16>(convert<float>(from[i]));
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) out[i] = convert<To>(from[i]);
  }
}

}  // namespace

// clang-format off
#define MB_EACH_STORED(M)                                                                                           \
  M(UInt8, uint8_t)                                                                                                 \
  M(Int8, int8_t)                                                                                                   \
  M(Int16, int16_t) M(Int32, int32_t) M(Int64, int64_t) M(Half, half) M(Float, float) M(Double, double)             \
      M(ComplexHalf, complex<half>) M(ComplexFloat, complex<float>) M(ComplexDouble, complex<double>) M(Bool, bool) \
          M(BFloat16, bfloat16) M(UInt16, uint16_t) M(UInt32, uint32_t) M(UInt64, uint64_t)
// clang-format on

template <class T>
void load_row(T* to, const char* from, int64_t stride, int64_t n, DType dtype) {
  switch (dtype) {
    // clang-format off
#define MB_CASE(name, type) \
  case DType::name:         \
    return load_as<T, type>(to, from, stride, n);
    // clang-format on
    MB_EACH_STORED(MB_CASE)
#undef MB_CASE
  }
}

template <class T>
void store_row(char* to, const T* from, int64_t stride, int64_t n, DType dtype) {
  switch (dtype) {
    // clang-format off
#define MB_CASE(name, type) \
  case DType::name:         \
    return store_as<type, T>(to, from, stride, n);
    // clang-format on
    MB_EACH_STORED(MB_CASE)
#undef MB_CASE
  }
}

// clang-format off
#define MB_INSTANTIATE(name, type)                                     \
  template void load_row(type*, const char*, int64_t, int64_t, DType); \
  template void store_row(char*, const type*, int64_t, int64_t, DType);
// clang-format on
MB_EACH_STORED(MB_INSTANTIATE)
#undef MB_INSTANTIATE

}  // namespace mybackend::device

#endif
