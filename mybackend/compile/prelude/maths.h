// Maths functions for float and double under one name, mb_<function>.
//
// On the host with glibc 2.35 or newer the C functions are declared with a `simd` attribute, so that a loop over them
// calls libmvec (at most 4 ulp); exp, tanh, sigmoid and erf of float are written out, so that they are inlined into the
// loop: a call clobbers every vector register. NaN and infinity stay right; nothing here needs -ffast-math.
#pragma once

#include "numbers.h"

#if !MB_GPU
#if defined(__x86_64__) && !defined(__clang__) && defined(MB_LIBMVEC)
#define MB_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define MB_VECTOR __attribute__((const))
#endif
#define MB_DECLARE_1(name)               \
  MB_VECTOR double name(double) noexcept; \
  MB_VECTOR float name##f(float) noexcept;
#define MB_DECLARE_2(name)                       \
  MB_VECTOR double name(double, double) noexcept; \
  MB_VECTOR float name##f(float, float) noexcept;
#define MB_DECLARE_SCALAR_1(name) \
  double name(double) noexcept;   \
  float name##f(float) noexcept;
#define MB_DECLARE_SCALAR_2(name)         \
  double name(double, double) noexcept; \
  float name##f(float, float) noexcept;
extern "C" {
MB_DECLARE_1(sin)
MB_DECLARE_1(cos)
MB_DECLARE_1(tan)
MB_DECLARE_1(asin)
MB_DECLARE_1(acos)
MB_DECLARE_1(atan)
MB_DECLARE_1(sinh)
MB_DECLARE_1(cosh)
MB_DECLARE_1(tanh)
MB_DECLARE_1(asinh)
MB_DECLARE_1(acosh)
MB_DECLARE_1(atanh)
MB_DECLARE_1(exp)
MB_DECLARE_1(exp2)
MB_DECLARE_1(expm1)
MB_DECLARE_1(log)
MB_DECLARE_1(log2)
MB_DECLARE_1(log10)
MB_DECLARE_1(log1p)
MB_DECLARE_1(erf)
MB_DECLARE_1(erfc)
MB_DECLARE_2(pow)
MB_DECLARE_2(atan2)
MB_DECLARE_2(hypot)
MB_DECLARE_SCALAR_2(fmod)
MB_DECLARE_SCALAR_2(nextafter)
double lgamma_r(double, int*) noexcept;
float lgammaf_r(float, int*) noexcept;
double frexp(double, int*) noexcept;
float frexpf(float, int*) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
}
#undef MB_DECLARE_1
#undef MB_DECLARE_2
#undef MB_DECLARE_SCALAR_1
#undef MB_DECLARE_SCALAR_2
#undef MB_VECTOR
#define MB_BUILTIN(name) __builtin_##name
#else
#define MB_BUILTIN(name) ::name
#endif

#define MB_MATHS_1(name)           \
  MB_FN float mb_##name(float x) { \
    return ::name##f(x);           \
  }                                \
  MB_FN double mb_##name(double x) { \
    return ::name(x);              \
  }
#define MB_MATHS_2(name)                       \
  MB_FN float mb_##name(float x, float y) {    \
    return ::name##f(x, y);                    \
  }                                            \
  MB_FN double mb_##name(double x, double y) { \
    return ::name(x, y);                       \
  }
#define MB_INSTRUCTION_1(name)       \
  MB_FN float mb_##name(float x) {   \
    return MB_BUILTIN(name##f)(x);   \
  }                                  \
  MB_FN double mb_##name(double x) { \
    return MB_BUILTIN(name)(x);      \
  }

MB_MATHS_1(sin)
MB_MATHS_1(cos)
MB_MATHS_1(tan)
MB_MATHS_1(asin)
MB_MATHS_1(acos)
MB_MATHS_1(atan)
MB_MATHS_1(asinh)
MB_MATHS_1(acosh)
MB_MATHS_1(atanh)
MB_MATHS_1(exp2)
MB_MATHS_1(expm1)
MB_MATHS_1(log)
MB_MATHS_1(log2)
MB_MATHS_1(log10)
MB_MATHS_1(log1p)
MB_MATHS_1(erfc)
MB_MATHS_2(atan2)
MB_MATHS_2(hypot)
MB_MATHS_2(fmod)
MB_MATHS_2(nextafter)
MB_INSTRUCTION_1(sqrt)
MB_INSTRUCTION_1(floor)
MB_INSTRUCTION_1(ceil)
MB_INSTRUCTION_1(trunc)
MB_INSTRUCTION_1(rint)
MB_INSTRUCTION_1(fabs)
#undef MB_MATHS_1
#undef MB_MATHS_2
#undef MB_INSTRUCTION_1

MB_FN float mb_copysign(float x, float sign) {
  return mb_bits<float>((mb_bits<mb_u32>(x) & 0x7fffffffu) | (mb_bits<mb_u32>(sign) & 0x80000000u));
}
MB_FN double mb_copysign(double x, double sign) {
  return mb_bits<double>((mb_bits<mb_u64>(x) & 0x7fffffffffffffffull) | (mb_bits<mb_u64>(sign) & 0x8000000000000000ull));
}
MB_FN bool mb_signbit(float x) {
  return (mb_bits<mb_u32>(x) & 0x80000000u) != 0u;
}
MB_FN bool mb_signbit(double x) {
  return (mb_bits<mb_u64>(x) & 0x8000000000000000ull) != 0ull;
}
template <class T>
MB_FN bool mb_signbit(T x) {
  return x < T(0);
}

#if MB_GPU
MB_FN float mb_lgamma(float x) {
  return ::lgammaf(x);
}
MB_FN double mb_lgamma(double x) {
  return ::lgamma(x);
}
#else
MB_FN float mb_lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
MB_FN double mb_lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
#endif

MB_FN float mb_frexp(float x, int* exponent) {
  return ::frexpf(x, exponent);
}
MB_FN double mb_frexp(double x, int* exponent) {
  return ::frexp(x, exponent);
}
MB_FN float mb_ldexp(float x, int exponent) {
  return ::ldexpf(x, exponent);
}
MB_FN double mb_ldexp(double x, int exponent) {
  return ::ldexp(x, exponent);
}

MB_FN double mb_exp(double x) {
  return ::exp(x);
}
// In double: 4 ulp of libmvec's powf are too many where 1 - b^n follows, as in the bias correction of Adam.
MB_FN double mb_pow(double x, double y) {
  return ::pow(x, y);
}
MB_FN float mb_pow(float x, float y) {
  return float(::pow(double(x), double(y)));
}
MB_FN double mb_tanh(double x) {
  return ::tanh(x);
}
MB_FN double mb_erf(double x) {
  return ::erf(x);
}
MB_FN double mb_sinh(double x) {
  return ::sinh(x);
}
MB_FN double mb_cosh(double x) {
  return ::cosh(x);
}

#if MB_GPU
MB_FN float mb_exp(float x) {
  return ::expf(x);
}
MB_FN float mb_tanh(float x) {
  return ::tanhf(x);
}
MB_FN float mb_erf(float x) {
  return ::erff(x);
}
MB_FN float mb_sinh(float x) {
  return ::sinhf(x);
}
MB_FN float mb_cosh(float x) {
  return ::coshf(x);
}
#else
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a minimax polynomial (the coefficients of Cephes' expf, Moshier 1989), at
// most 1.5 ulp. 2^n is applied in two factors, so that subnormal results and overflow come out right.
MB_FN float mb_exp(float x) {
  const float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  float bounded = x < -104.0f ? -104.0f : x;
  bounded = bounded > 89.0f ? 89.0f : bounded;
  const float shifted = bounded * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int whole = mb_bits<int>(shifted) - 0x4b400000;
  const int part = whole >> 1;
  const float scale = mb_bits<float>((part + 127) << 23);
  const float rest = mb_bits<float>((whole - part + 127) << 23);
  return p * scale * rest;
}

// Below 0.625 a polynomial (the coefficients of Cephes' tanhf), above 1 - 2 / (e^2|x| + 1).
MB_FN float mb_tanh(float x) {
  const float z = mb_fabs(x);
  const float s = x * x;
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float near = p * s * x + x;
  const float far = mb_copysign(1.0f - 2.0f / (mb_exp(2.0f * z) + 1.0f), x);
  return z < 0.625f ? near : x != x ? x : far;
}

// By e^(|x|/2), whose square reaches the largest float (libmvec's overflow earlier); below 1 sinh by a polynomial (the
// coefficients of Cephes' sinhf).
MB_FN float mb_cosh(float x) {
  const float t = mb_exp(0.5f * mb_fabs(x));
  return 0.5f * t * t + 0.5f / (t * t);
}
MB_FN float mb_sinh(float x) {
  const float t = mb_exp(0.5f * mb_fabs(x));
  const float far = mb_copysign(0.5f * t * t - 0.5f / (t * t), x);
  const float s = x * x;
  const float near = ((2.03721912945e-4f * s + 8.33028376239e-3f) * s + 1.66667160211e-1f) * s * x + x;
  return mb_fabs(x) < 1.0f ? near : far;
}

// x P(x^2) / Q(x^2), a minimax fit of erf(x)/x up to where erf(x) is 1 (relative error 2e-8, so that rounding dominates: at
// most 6 ulp, 3.3e-7). Half the time of what is exact to 1.5 ulp, and closer than the formula of ATen's vectors (5e-7).
MB_FN float mb_erf(float x) {
  float u = x < -3.925f ? -3.925f : x;
  u = u > 3.925f ? 3.925f : u;
  const float s = u * u;
  float p = 2.045994051513844e-06f;
  p = p * s + 0.0002848257718142122f;
  p = p * s + 0.0037721111439168453f;
  p = p * s + 0.052767910063266754f;
  p = p * s + 0.19058465957641602f;
  p = p * s + 1.1283791065216064f;
  float q = 3.804649895755574e-05f;
  q = q * s + 0.0011637366842478514f;
  q = q * s + 0.014982322230935097f;
  q = q * s + 0.11417879164218903f;
  q = q * s + 0.5022339820861816f;
  q = q * s + 1.0f;
  float y = u * p / q;
  y = y < -1.0f ? -1.0f : y;
  return y > 1.0f ? 1.0f : y;
}
#endif

template <class T>
MB_FN T mb_sigmoid(T x) {
  return T(1) / (T(1) + mb_exp(-x));
}
template <class T>
MB_FN T mb_rsqrt(T x) {
  return T(1) / mb_sqrt(x);
}
