// Number types: half and bfloat16 are stored in 16 bits and computed with in float. Conversions vectorise on the host.
#pragma once

#include "platform.h"

#define MB_INF __builtin_huge_valf()
#define MB_NAN __builtin_nanf("")

struct mb_bf16 {
  mb_u16 bits;
};
struct mb_f16 {
  mb_u16 bits;
};

// Complex numbers are moved only.
struct mb_c32 {
  mb_f16 real, imaginary;
};
struct mb_c64 {
  float real, imaginary;
};
struct mb_c128 {
  double real, imaginary;
};

MB_FN float mb_load(mb_bf16 x) {
  return mb_bits<float>(mb_u32(x.bits) << 16);
}

// Exponent and mantissa move into a float that is 2^112 too small, subnormal halves included; infinity and NaN are set.
MB_FN float mb_load(mb_f16 x) {
  const mb_u32 magnitude = mb_u32(x.bits & 0x7fff) << 13;
  const mb_u32 finite = mb_bits<mb_u32>(mb_bits<float>(magnitude) * 5192296858534827628530496329220096.0f);
  const mb_u32 value = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
  return mb_bits<float>(value | mb_u32(x.bits & 0x8000) << 16);
}

// A bool in memory is a byte that is compared: g++ does not vectorise a choice by a bool that was loaded as one.
MB_FN bool mb_load(const bool& x) {
  return *reinterpret_cast<const mb_u8*>(&x) != 0;
}

template <class T>
MB_FN T mb_load(T x) {
  return x;
}

template <class To>
struct mb_to {
  template <class From>
  MB_FN To from(From x) {
    return To(x);
  }
  // As a choice: g++ does not vectorise a conversion from bool to a floating-point number.
  MB_FN To from(bool x) {
    return x ? To(1) : To(0);
  }
};

template <>
struct mb_to<bool> {
  template <class From>
  MB_FN bool from(From x) {
    return x != From(0);
  }
};

// Round to nearest even; NaN stays NaN.
template <>
struct mb_to<mb_bf16> {
  template <class From>
  MB_FN mb_bf16 from(From from) {
    const float x = mb_to<float>::from(from);
    const mb_u32 bits = mb_bits<mb_u32>(x);
    const mb_u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    mb_bf16 to;
    to.bits = mb_u16(x != x ? 0x7fc0u : rounded);
    return to;
  }
};

template <>
struct mb_to<mb_f16> {
  template <class From>
  MB_FN mb_f16 from(From from) {
    const float x = mb_to<float>::from(from);
    const mb_u32 bits = mb_bits<mb_u32>(x);
    const mb_u32 magnitude = bits & 0x7fffffffu;
    // Below 2^-14 adding one half makes the unit of the sum that of a subnormal half.
    const mb_u32 subnormal = mb_bits<mb_u32>(mb_bits<float>(magnitude) + 0.5f) - 0x3f000000u;
    const mb_u32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    const mb_u32 finite = magnitude < 0x38800000u ? subnormal : normal;
    const mb_u32 value = magnitude > 0x7f800000u ? 0x7e00u : magnitude >= 0x47800000u ? 0x7c00u : finite;
    mb_f16 to;
    to.bits = mb_u16(value | (bits >> 16 & 0x8000u));
    return to;
  }
};

// Integers from floating point: by way of `between`, as in ATen. Unsigned ones go through a signed integer, so that -1.0
// wraps and does not saturate; signed ones of 8 and 16 bits through int, so that what does not fit wraps.
#define MB_INTEGER_FROM_FLOATING(type, between)                    \
  template <>                                                      \
  struct mb_to<type> {                                             \
    template <class From>                                          \
    MB_FN type from(From x) {                                      \
      return type(x);                                              \
    }                                                              \
    MB_FN type from(float x) {                                     \
      return type(between(x));                                     \
    }                                                              \
    MB_FN type from(double x) {                                    \
      return type(between(x));                                     \
    }                                                              \
  };
MB_INTEGER_FROM_FLOATING(mb_u8, mb_i64)
MB_INTEGER_FROM_FLOATING(mb_u16, mb_i64)
MB_INTEGER_FROM_FLOATING(mb_u32, mb_i64)
MB_INTEGER_FROM_FLOATING(mb_i8, int)
MB_INTEGER_FROM_FLOATING(short, int)
#undef MB_INTEGER_FROM_FLOATING

// As seen through its storage type: what to_dtype to a 16-bit type means for a value that is kept in float.
template <class Stored>
MB_FN float mb_round_to(float x) {
  return mb_load(mb_to<Stored>::from(x));
}
