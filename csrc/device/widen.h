// widen(x), narrow<S>(x): between a stored type and the type it is computed in, for loops over raw arrays.
//
// half and bfloat16 widen to float; everything else is itself. On the host these are bit operations on whole vectors,
// because the conversions of c10::Half do not vectorise. Rounding is to nearest even; NaN stays NaN, inf stays inf.
#pragma once

#include <cstring>

#include "csrc/device/numeric.h"

namespace mybackend::device {

#if defined(__CUDACC__)

template <class S>
MB_DEVICE Compute<S> widen(const S& x) {
  return convert<Compute<S>>(x);
}
template <class S>
MB_DEVICE S narrow(Compute<S> x) {
  return convert<S>(x);
}

#else

namespace detail {
template <class To, class From>
MB_DEVICE To bits(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &x, sizeof(To));
  return to;
}
}  // namespace detail

template <class S>
MB_DEVICE Compute<S> widen(const S& x) {
  using detail::bits;
  if constexpr (std::is_same_v<S, half>) {
    const uint32_t word = uint32_t(x.x) << 16;
    const uint32_t magnitude = (word & 0x7fffffffu) >> 3;
    // Moves the exponent from bias 15 to bias 127, subnormal numbers included; the largest exponent is inf or NaN.
    const uint32_t scaled = bits<uint32_t>(bits<float>(magnitude) * 0x1p112f);
    return bits<float>(scaled | (magnitude >= 0x0f800000u ? 0x7f800000u : 0u) | (word & 0x80000000u));
  } else if constexpr (std::is_same_v<S, bfloat16>) {
    return bits<float>(uint32_t(x.x) << 16);
  } else {
    return x;
  }
}

template <class S>
MB_DEVICE S narrow(Compute<S> x) {
  using detail::bits;
  if constexpr (std::is_same_v<S, half>) {
    const uint32_t word = bits<uint32_t>(x);
    const uint32_t magnitude = word & 0x7fffffffu;
    // Below 2^-14 adding 0.5 leaves the rounded subnormal in the low bits; above, the exponent is moved and 13 bits go.
    const uint32_t small = bits<uint32_t>(bits<float>(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1)) >> 13;
    const uint32_t finite = magnitude < 0x38800000u ? small : normal;
    const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    const uint32_t rounded = magnitude >= 0x477ff000u ? large : finite;
    return S(uint16_t(rounded | ((word >> 16) & 0x8000u)), S::from_bits());
  } else if constexpr (std::is_same_v<S, bfloat16>) {
    const uint32_t word = bits<uint32_t>(x);
    const uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
    return S(uint16_t(x != x ? 0x7fc0u : rounded), S::from_bits());
  } else {
    return x;
  }
}

#endif

}  // namespace mybackend::device
