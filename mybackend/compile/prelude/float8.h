// 8-bit floating-point numbers: stored in a byte and computed with in float. Layouts and roundings are ATen's
// (c10/util/Float8_*.h): to nearest even; what a number too large becomes differs from format to format.
#pragma once

#include "numbers.h"

// `Mantissa` bits after a sign and an exponent of bias `Bias`. From `Overflow` << 20 on, the bits of a float are those
// of a number that is too large, which becomes `TooLarge`. `Fnuz`: no negative zero; its bits are the only NaN.
template <int Mantissa, int Bias, mb_u32 Overflow, mb_u32 TooLarge, bool Fnuz>
struct mb_f8 {
  mb_u8 bits;

  MB_FN mb_f8 from(float x) {
    const mb_u32 all = mb_bits<mb_u32>(x);
    const mb_u32 magnitude = all & 0x7fffffffu;
    // Adding this makes the unit of the sum that of a subnormal number.
    const mb_u32 magic = mb_u32(151 - Bias - Mantissa) << 23;
    const mb_u32 subnormal = mb_bits<mb_u32>(mb_bits<float>(magnitude) + mb_bits<float>(magic)) - magic;
    const mb_u32 half = (1u << (22 - Mantissa)) - 1u + ((magnitude >> (23 - Mantissa)) & 1u);
    const mb_u32 normal = (magnitude - (mb_u32(127 - Bias) << 23) + half) >> (23 - Mantissa);
    const mb_u32 finite = magnitude < mb_u32(128 - Bias) << 23 ? subnormal : normal;
    const mb_u32 nan = Fnuz ? 0x80u : 0x7fu;
    const mb_u32 value = magnitude > 0x7f800000u ? nan : magnitude >= Overflow << 20 ? TooLarge : finite;
    const mb_u32 sign = Fnuz && value == 0u ? 0u : all >> 24 & 0x80u;
    mb_f8 to;
    to.bits = mb_u8(value | sign);
    return to;
  }

  MB_FN float load(mb_f8 x) {
    const mb_u32 magnitude = x.bits & 0x7fu;
    const mb_u32 scale = mb_u32(254 - Bias) << 23;
    const mb_u32 finite = mb_bits<mb_u32>(mb_bits<float>(magnitude << (23 - Mantissa)) * mb_bits<float>(scale));
    const bool has_infinity = TooLarge == 0x7cu;
    const mb_u32 special = has_infinity ? magnitude << 21 | 0x7f800000u : 0x7fc00000u;
    const bool is_special = Fnuz ? x.bits == 0x80 : magnitude >= (has_infinity ? 0x7cu : 0x7fu);
    return mb_bits<float>((is_special ? special : finite) | mb_u32(x.bits & 0x80) << 24);
  }
};

// Too large is the largest number (NaN in torch without saturation: c_types.py chooses), infinity in e5m2, else NaN.
typedef mb_f8<3, 7, 1086, 0x7e, false> mb_f8e4m3fn;
typedef mb_f8<3, 7, 1087, 0x7f, false> mb_f8e4m3fn_overflowing;
typedef mb_f8<2, 15, 1144, 0x7c, false> mb_f8e5m2;
typedef mb_f8<3, 8, 1080, 0x80, true> mb_f8e4m3fnuz;
typedef mb_f8<2, 16, 1144, 0x80, true> mb_f8e5m2fnuz;

// A power of two: the exponent of a float and nothing else.
struct mb_f8e8m0fnu {
  mb_u8 bits;

  MB_FN mb_f8e8m0fnu from(float x) {
    const mb_u32 all = mb_bits<mb_u32>(x);
    const mb_u32 exponent = all >> 23 & 0xffu;
    // A tie is rounded up unless the number is subnormal: what it would be rounded down to is even only there.
    const bool up = (all & 0x7fffffu) > 0x400000u || ((all & 0x7fffffu) == 0x400000u && exponent != 0u);
    mb_f8e8m0fnu to;
    to.bits = mb_u8(exponent == 0xffu ? exponent : exponent + mb_u32(up));
    return to;
  }

  MB_FN float load(mb_f8e8m0fnu x) {
    const mb_u32 power = x.bits == 0 ? 0x00400000u : mb_u32(x.bits) << 23;
    return mb_bits<float>(x.bits == 0xff ? 0x7fc00000u : power);
  }
};

#define MB_FLOAT8(type)                                            \
  MB_FN float mb_load(type x) {                                    \
    return type::load(x);                                          \
  }                                                                \
  template <>                                                      \
  struct mb_to<type> {                                             \
    template <class From>                                          \
    MB_FN type from(From x) {                                      \
      return type::from(float(x));                                 \
    }                                                              \
  };
MB_FLOAT8(mb_f8e4m3fn)
MB_FLOAT8(mb_f8e4m3fn_overflowing)
MB_FLOAT8(mb_f8e5m2)
MB_FLOAT8(mb_f8e4m3fnuz)
MB_FLOAT8(mb_f8e5m2fnuz)
MB_FLOAT8(mb_f8e8m0fnu)
#undef MB_FLOAT8
