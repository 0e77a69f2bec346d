// Arithmetic whose meaning is Python's or ATen's rather than C's.
#pragma once

#include "maths.h"

// NaN wins.
template <class T>
MB_FN T mb_maximum(T a, T b) {
  const T greater = b > a ? b : a;
  return b != b ? b : greater;
}
template <class T>
MB_FN T mb_minimum(T a, T b) {
  const T less = b < a ? b : a;
  return b != b ? b : less;
}

// Keeps NaN and -0. Not a choice: of one whose outcome is compared again, g++ makes branches that it does not vectorise.
template <class T>
MB_FN T mb_relu(T x) {
  return x < T(0) ? T(0) : x;
}
MB_FN float mb_relu(float x) {
  return mb_bits<float>(mb_bits<mb_u32>(x) & (mb_u32(x < 0) - 1u));
}
MB_FN double mb_relu(double x) {
  return mb_bits<double>(mb_bits<mb_u64>(x) & (mb_u64(x < 0) - 1ull));
}

// Integer division that rounds down, and the remainder with the divisor's sign. A divisor of 0 gives 0, where C++ has
// no answer.
template <class T>
MB_FN T mb_floordiv(T a, T b) {
  if (b == T(0)) return T(0);
  const T q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
template <class T>
MB_FN T mb_truncdiv(T a, T b) {
  return b == T(0) ? T(0) : a / b;
}
template <class T>
MB_FN T mb_modulo(T a, T b) {
  if (b == T(0)) return T(0);
  const T r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
template <class T>
MB_FN T mb_truncmod(T a, T b) {
  return b == T(0) ? T(0) : a % b;
}
MB_FN float mb_remainder(float a, float b) {
  const float r = mb_fmod(a, b);
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
MB_FN double mb_remainder(double a, double b) {
  const double r = mb_fmod(a, b);
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}
template <class T>
MB_FN T mb_remainder(T a, T b) {
  return mb_modulo(a, b);
}
MB_FN float mb_floordiv(float a, float b) {
  return mb_floor(a / b);
}
MB_FN double mb_floordiv(double a, double b) {
  return mb_floor(a / b);
}

// Shifts by the width or more, or by a negative number: 0, or all bits the sign's.
template <class T>
MB_FN T mb_shift_left(T a, T b) {
  return b < T(0) || b >= T(sizeof(T) * 8) ? T(0) : T(mb_u64(a) << mb_u64(b));
}
template <class T>
MB_FN T mb_shift_right(T a, T b) {
  const T most = T(sizeof(T) * 8 - 1);
  return a >> (b < T(0) || b > most ? most : b);
}

// Integer powers wrap; a negative exponent gives 0 but for bases 1 and -1.
template <class T>
MB_FN T mb_integer_power(T base, T exponent) {
  if (exponent < T(0)) return base == T(1) ? T(1) : base == T(-1) ? (exponent % T(2) != T(0) ? T(-1) : T(1)) : T(0);
  mb_u64 result = 1, factor = mb_u64(base), left = mb_u64(exponent);
  for (; left != 0; left >>= 1) {
    if (left & 1) result *= factor;
    factor *= factor;
  }
  return T(result);
}
