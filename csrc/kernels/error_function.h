// erf for float in a form that vectorises, erfcx, and the inverses of erf and erfc.
#pragma once

#include <cstring>

#include "csrc/device/numeric.h"

namespace mybackend::kernels {

constexpr double kSqrtTwo = 1.41421356237309504880;
constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInverseSqrtPi = 0.56418958354775628695;

MB_DEVICE double error_function(double x) {
  return math::erf(x);
}

// e^x for -80 < x <= 0, with a relative error of 1e-7, short enough to be inlined among other arithmetic: 2^k times a
// minimax polynomial of the rest, which is at most log(2) / 2.
MB_DEVICE float exp_below_zero(float x) {
  const float k = math::rint(x * 1.44269504f);
  const float r = (x - k * 0.693145752f) - k * 1.42860682e-6f;
  float p = 8.38109360014e-3f;
  p = p * r + 4.19175265691e-2f;
  p = p * r + 1.66663259214e-1f;
  p = p * r + 4.99988691463e-1f;
  p = p * r + 1.00000006462f;
  p = p * r + 1.00000007549f;
  const uint32_t bits = uint32_t(int32_t(k) + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof(power));
  return p * power;
}

// Below 1, x times a polynomial in x^2; above, 1 - e^-q(|x|). Both polynomials are minimax fits of erf(x)/x and of
// -log(erfc(x)) weighted by erfc(x), made at 40 digits; their error is below 2e-9, so that rounding dominates (1.5
// ulp).
MB_DEVICE float error_function(float x) {
  const float z = math::fabs(x);
  const float s = x * x;
  float p = 7.85384096477e-5f;
  p = p * s - 8.0101874494e-4f;
  p = p * s + 5.18832698265e-3f;
  p = p * s - 2.68538115652e-2f;
  p = p * s + 1.12835851398e-1f;
  p = p * s - 3.76126258235e-1f;
  p = p * s + 1.2837916573e-1f;
  const float u = z < 4.0f ? z : 4.0f;
  float q = -1.86383809513e-4f;
  q = q * u + 2.94770178605e-3f;
  q = q * u - 2.18382308888e-2f;
  q = q * u + 1.03107088962e-1f;
  q = q * u + 6.38144463493e-1f;
  q = q * u + 1.12708940351f;
  q = q * u + 3.41472600047e-4f;
  const float tail = 1.0f - exp_below_zero(-q);
  return z >= 1.0f ? math::copysign(tail, x) : x + x * p;
}

// The distribution function of the standard normal distribution.
MB_DEVICE double normal_cdf(double x) {
  return 0.5 * (1.0 + math::erf(x * kSqrtHalf));
}

// Half of erfc(|x| / sqrt(2)) or its complement, with -log(erfc) as a minimax polynomial weighted by erfc: an absolute
// error below 1e-8, without the cancellation of 1 + erf(x). NaN gives a number.
MB_DEVICE float normal_cdf(float x) {
  const float z = math::fabs(x) * float(kSqrtHalf);
  const float u = z < 5.5f ? z : 5.5f;
  float q = 3.07319160083e-5f;
  q = q * u - 3.02774361298e-4f;
  q = q * u + 1.01195009753e-3f;
  q = q * u + 5.72503996096e-4f;
  q = q * u - 1.96179065431e-2f;
  q = q * u + 1.02937250117e-1f;
  q = q * u + 6.36593098208e-1f;
  q = q * u + 1.12838076645f;
  q = q * u - 1.51416536677e-8f;
  const float half = z < 5.5f ? 0.5f * exp_below_zero(-q) : 0.0f;
  return x < 0.0f ? half : 1.0f - half;
}

// e^(x^2) erfc(x). Beyond 10 by its asymptotic series, whose 8 terms reach 1e-16 there; the continued fraction of erfc
// between 2.5 and 10; directly below, where e^(x^2) is harmless.
template <class T>
MB_DEVICE T scaled_complement(T value) {
  const double x = double(value);
  if (x != x) return value;
  if (x < 2.5) return T(x < -26.7 ? std::numeric_limits<double>::infinity() : math::exp(x * x) * math::erfc(x));
  if (x < 10) {
    double fraction = x;
    for (int k = 60; k > 0; k--) fraction = x + 0.5 * k / fraction;
    return T(kInverseSqrtPi / fraction);
  }
  const double r = 0.5 / (x * x);
  double term = 1;
  double series = 1;
  for (int k = 1; k <= 8; k++) {
    term *= -(2 * k - 1) * r;
    series += term;
  }
  return T(kInverseSqrtPi / x * (x > 1e150 ? 1.0 : series));
}

// The x > 0 with erfc(x) = y, for y in (0, 1]: Newton's method with a cubic correction (Halley) on log(erfc), from
// the first terms of its asymptotic inverse.
template <class T>
MB_DEVICE T inverse_complement(T value) {
  const double y = double(value);
  if (!(y > 0)) return y == 0 ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::quiet_NaN();
  const double target = math::log(y);
  const double t = math::sqrt(-2.0 * math::log(y * 0.5));
  double x = (t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))) * kSqrtHalf;
  x = x < 0 ? 0 : x;
  for (int step = 0; step < 4; step++) {
    const double scaled = scaled_complement(x);
    const double error = math::log(scaled) - x * x - target;
    const double slope = -2.0 * kInverseSqrtPi / scaled;
    const double curve = slope * (-2.0 * x - slope);
    x -= error / (slope - error * curve / (2.0 * slope));
  }
  return T(x < 0 ? 0 : x);
}

// Odd. Near 0 by Newton's method on erf, where log(erfc) has lost the digits of a small x.
template <class T>
MB_DEVICE T inverse_error_function(T value) {
  const double y = math::fabs(double(value));
  if (!(y <= 1)) return std::numeric_limits<T>::quiet_NaN();
  double x;
  if (y < 0.5) {
    x = y / (2.0 * kInverseSqrtPi) * (1.0 + y * y * 0.2617993877991494);
    for (int step = 0; step < 3; step++) {
      const double error = (math::erf(x) - y) / (2.0 * kInverseSqrtPi * math::exp(-x * x));
      x -= error / (1.0 + x * error);
    }
  } else {
    x = inverse_complement(1.0 - y);
  }
  return T(math::copysign(x, double(value)));
}

}  // namespace mybackend::kernels
