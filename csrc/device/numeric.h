// Conversions and maths functions with one spelling for nvcc and for a vectorising C++ compiler.
//
// `convert<To>(x)` follows c10::convert: complex to real drops the imaginary part, anything to bool asks for non-zero,
// floating to unsigned goes through a signed integer.
//
// `math::f(x)` exists for float and double. On the host with glibc 2.35 or newer the C functions are declared again
// with a `simd` attribute, so that a loop over them calls libmvec (at most 4 ulp) without -ffast-math; NaN and inf stay
// right.
#pragma once

#include <cmath>
#include <cstdint>

#include "csrc/device/dtype.h"
#include "csrc/device/portable.h"

#if !defined(__CUDACC__) && defined(__x86_64__) && defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 35) && defined(__GNUC__) && !defined(__clang__)
#define MB_SIMD_MATHS 1
#endif
#endif

#ifdef MB_SIMD_MATHS
#define MB_SIMD __attribute__((simd("notinbranch"), const))
#define MB_SIMD_1(name)                 \
  MB_SIMD double name(double) noexcept; \
  MB_SIMD float name##f(float) noexcept;
#define MB_SIMD_2(name)                         \
  MB_SIMD double name(double, double) noexcept; \
  MB_SIMD float name##f(float, float) noexcept;
extern "C" {
MB_SIMD_1(sin)
MB_SIMD_1(cos)
MB_SIMD_1(tan)
MB_SIMD_1(asin)
MB_SIMD_1(acos)
MB_SIMD_1(atan)
MB_SIMD_1(sinh)
MB_SIMD_1(cosh)
MB_SIMD_1(tanh)
MB_SIMD_1(asinh)
MB_SIMD_1(acosh)
MB_SIMD_1(atanh)
MB_SIMD_1(exp)
MB_SIMD_1(exp2)
MB_SIMD_1(expm1)
MB_SIMD_1(log)
MB_SIMD_1(log2)
MB_SIMD_1(log10)
MB_SIMD_1(log1p)
MB_SIMD_1(erf)
MB_SIMD_1(erfc)
MB_SIMD_2(pow)
MB_SIMD_2(atan2)
MB_SIMD_2(hypot)
}
#undef MB_SIMD_1
#undef MB_SIMD_2
#undef MB_SIMD
#endif

namespace mybackend {

template <class To, class From>
MB_DEVICE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_complex<From>) {
    if constexpr (is_complex<To>) {
      return To(convert<Real<To>>(x.real()), convert<Real<To>>(x.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return convert<bool>(x.real()) || convert<bool>(x.imag());
    } else {
      return convert<To>(x.real());
    }
  } else if constexpr (is_complex<To>) {
    return To(convert<Real<To>>(x), Real<To>(0));
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Compute<From>>(x) != Compute<From>(0);
  } else if constexpr (is_floating<From> && std::is_unsigned_v<To>) {
    return static_cast<To>(static_cast<int64_t>(static_cast<Compute<From>>(x)));
  } else if constexpr (std::is_same_v<From, half> || std::is_same_v<From, bfloat16>) {
    return static_cast<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, half> || std::is_same_v<To, bfloat16>) {
    return To(static_cast<float>(x));
  } else {
    return static_cast<To>(x);
  }
}

namespace math {

#define MB_MATH_1(name)             \
  MB_DEVICE float name(float x) {   \
    return ::name##f(x);            \
  }                                 \
  MB_DEVICE double name(double x) { \
    return ::name(x);               \
  }
#define MB_MATH_2(name)                       \
  MB_DEVICE float name(float x, float y) {    \
    return ::name##f(x, y);                   \
  }                                           \
  MB_DEVICE double name(double x, double y) { \
    return ::name(x, y);                      \
  }

MB_MATH_1(sin)
MB_MATH_1(cos)
MB_MATH_1(tan)
MB_MATH_1(asin)
MB_MATH_1(acos)
MB_MATH_1(atan)
MB_MATH_1(sinh)
MB_MATH_1(cosh)
MB_MATH_1(tanh)
MB_MATH_1(asinh)
MB_MATH_1(acosh)
MB_MATH_1(atanh)
MB_MATH_1(exp)
MB_MATH_1(exp2)
MB_MATH_1(expm1)
MB_MATH_1(log)
MB_MATH_1(log2)
MB_MATH_1(log10)
MB_MATH_1(log1p)
MB_MATH_1(erf)
MB_MATH_1(erfc)
MB_MATH_1(tgamma)
MB_MATH_1(sqrt)
MB_MATH_1(floor)
MB_MATH_1(ceil)
MB_MATH_1(trunc)
MB_MATH_1(rint)
MB_MATH_1(fabs)
MB_MATH_2(pow)
MB_MATH_2(atan2)
MB_MATH_2(hypot)
MB_MATH_2(fmod)
MB_MATH_2(copysign)
MB_MATH_2(nextafter)
#undef MB_MATH_1
#undef MB_MATH_2

MB_DEVICE float frexp(float x, int* exponent) {
  return ::frexpf(x, exponent);
}
MB_DEVICE double frexp(double x, int* exponent) {
  return ::frexp(x, exponent);
}

#if defined(__CUDACC__)
MB_DEVICE float lgamma(float x) {
  return ::lgammaf(x);
}
MB_DEVICE double lgamma(double x) {
  return ::lgamma(x);
}
#else  // ::lgamma writes the global `signgam`
MB_DEVICE float lgamma(float x) {
  int sign;
  return ::lgammaf_r(x, &sign);
}
MB_DEVICE double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}
#endif

MB_DEVICE float rsqrt(float x) {
  return 1.0f / sqrt(x);
}
MB_DEVICE double rsqrt(double x) {
  return 1.0 / sqrt(x);
}

template <class T>
MB_DEVICE bool isnan(T x) {
  if constexpr (is_complex<T>) {
    return x.real() != x.real() || x.imag() != x.imag();
  } else {
    return x != x;
  }
}

}  // namespace math
}  // namespace mybackend
