// Entry points of csrc/kernels/unary_*.cu: out = f(in).
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/operands.h"

// The functions without parameters, grouped by the file that defines them.
// clang-format off
#define MB_UNARY_ARITHMETIC(M)                                                                                         \
  M(abs)                                                                                                               \
  M(neg)                                                                                                               \
  M(sign)                                                                                                              \
  M(sgn) M(sqrt) M(rsqrt) M(reciprocal) M(conj_physical) M(angle) M(bitwise_not) M(logical_not) M(signbit) M(isposinf) \
      M(isneginf)
#define MB_UNARY_ROUNDING(M) M(ceil) M(floor) M(round) M(trunc) M(frac)
#define MB_UNARY_EXPONENTIAL(M) \
  M(exp) M(exp2) M(expm1) M(log) M(log2) M(log10) M(log1p) M(sigmoid) M(tanh) M(sinh) M(cosh)
#define MB_UNARY_TRIGONOMETRIC(M) M(sin) M(cos) M(tan) M(asin) M(acos) M(atan) M(asinh) M(acosh) M(atanh) M(sinc)
#define MB_UNARY_ERROR_FUNCTION(M) M(erf) M(erfc) M(erfinv) M(special_erfcx) M(special_ndtri) M(special_log_ndtr)
#define MB_UNARY_SPECIAL(M) M(lgamma) M(digamma) M(trigamma) M(special_entr)
#define MB_UNARY_BESSEL(M)                                                                                          \
  M(i0)                                                                                                             \
  M(special_i0e)                                                                                                    \
  M(special_i1)                                                                                                     \
  M(special_i1e) M(special_modified_bessel_k0) M(special_modified_bessel_k1) M(special_scaled_modified_bessel_k0)   \
      M(special_scaled_modified_bessel_k1) M(special_spherical_bessel_j0) M(special_bessel_j0) M(special_bessel_j1) \
          M(special_bessel_y0) M(special_bessel_y1) M(special_airy_ai)
// clang-format on

// clang-format off
#define MB_UNARY_KERNELS(M) \
  MB_UNARY_ARITHMETIC(M)    \
  MB_UNARY_ROUNDING(M)      \
  MB_UNARY_EXPONENTIAL(M) MB_UNARY_TRIGONOMETRIC(M) MB_UNARY_ERROR_FUNCTION(M) MB_UNARY_SPECIAL(M) MB_UNARY_BESSEL(M)
// clang-format on

namespace mybackend::kernels {
using device::Stream;

#define MB_DECLARE_UNARY(name) MB_DECLARE_KERNEL(name, void(Stream stream, const Operands<2>& operands));
MB_UNARY_KERNELS(MB_DECLARE_UNARY)
#undef MB_DECLARE_UNARY

// Rounds half to even at `decimals` digits after the point (before it where negative).
MB_DECLARE_KERNEL(round_decimals, void(Stream stream, const Operands<2>& operands, int64_t decimals));
// log(x / (1 - x)), x first clamped to [eps, 1 - eps] unless eps is negative.
MB_DECLARE_KERNEL(logit, void(Stream stream, const Operands<2>& operands, double eps));
// Replacements are those of real and imaginary parts; a null pointer means the largest and lowest finite number.
MB_DECLARE_KERNEL(nan_to_num, void(Stream stream, const Operands<2>& operands, double nan, const double* positive,
                                   const double* negative));
MB_DECLARE_KERNEL(polygamma, void(Stream stream, const Operands<2>& operands, int64_t n));
// x = mantissa * 2^exponent with 0.5 <= |mantissa| < 1: two kernels, as each has one output.
MB_DECLARE_KERNEL(frexp_mantissa, void(Stream stream, const Operands<2>& operands));
MB_DECLARE_KERNEL(frexp_exponent, void(Stream stream, const Operands<2>& operands));

}  // namespace mybackend::kernels
