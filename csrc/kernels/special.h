// Gamma and zeta functions, evaluated in double whatever they are asked in: none is called often enough to be
// worth tables of its own for float.
#pragma once

#include "csrc/device/numeric.h"

namespace mybackend::kernels {

constexpr double kPi = 3.14159265358979323846;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Recurrence up to 10, then the asymptotic series; reflection below 0.
MB_DEVICE double digamma_of(double x) {
  if (x == 0) return math::copysign(kInfinity, -x);
  double reflected = 0;
  if (x < 0) {
    const double part = x - math::trunc(x);
    if (part == 0) return kNaN;
    reflected = -kPi / math::tan(kPi * part);
    x = 1 - x;
  }
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  const double r = 1 / (x * x);
  const double series =
      r *
      (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760 - r / 12))))));
  return reflected + sum + math::log(x) - 0.5 / x - series;
}

MB_DEVICE double trigamma_of(double x) {
  double sign = 1;
  double reflected = 0;
  if (x < 0.5) {
    const double sine = math::sin(kPi * x);
    reflected = kPi * kPi / (sine * sine);
    sign = -1;
    x = 1 - x;
  }
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  const double r = 1 / (x * x);
  const double series =
      1 / x + r / 2 +
      r / x *
          (1.0 / 6 -
           r * (1.0 / 30 - r * (1.0 / 42 - r * (1.0 / 30 - r * (5.0 / 66 - r * (691.0 / 2730 - r * 7.0 / 6))))));
  return reflected + sign * (sum + series);
}

// Hurwitz's zeta function, the sum over k >= 0 of (q + k)^-x, by Euler and Maclaurin from the term where q + k is large
// enough for their series.
MB_DEVICE double zeta_of(double x, double q) {
  if (x == 1) return kInfinity;
  if (!(x > 1) || q != q) return kNaN;
  if (q <= 0) {
    if (q == math::floor(q)) return kInfinity;
    if (x != math::floor(x)) return kNaN;
  }
  double sum = 0;
  const double start = x < 80 ? 10 + x / 2 : 50;
  for (; q <= start; q += 1) sum += math::pow(q, -x);
  const double last = math::pow(q, -x);
  sum += last * q / (x - 1) + last / 2;
  // B(2j) / (2j)!
  constexpr double coefficients[] = {1.0 / 12,
                                     -1.0 / 720,
                                     1.0 / 30240,
                                     -1.0 / 1209600,
                                     1.0 / 47900160,
                                     -5.284190138687493e-10,
                                     1.338253653068468e-11,
                                     -3.389680296322583e-13,
                                     8.586062056277845e-15};
  double rising = x;
  double power = last / q;
  for (int j = 0; j < 9; j++) {
    sum += coefficients[j] * rising * power;
    rising *= (x + 2 * j + 1) * (x + 2 * j + 2);
    power /= q * q;
  }
  return sum;
}

// x^a e^-x / Gamma(a + 1)
MB_DEVICE double gamma_density(double a, double x) {
  return math::exp(a * math::log(x) - x - math::lgamma(a + 1));
}

// Lower and upper regularised incomplete gamma functions for 0 < a, x < inf.
MB_DEVICE double gamma_series(double a, double x) {
  double term = 1;
  double sum = 1;
  for (double n = 1; n < 1e6 && term > sum * 1e-17; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * gamma_density(a, x);
}

// Lentz's continued fraction.
MB_DEVICE double gamma_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / tiny;
  double d = 1 / b;
  double h = d;
  for (double n = 1; n < 1e6; n++) {
    const double factor = -n * (n - a);
    b += 2;
    d = factor * d + b;
    d = 1 / (math::fabs(d) < tiny ? tiny : d);
    c = b + factor / c;
    c = math::fabs(c) < tiny ? tiny : c;
    const double change = c * d;
    h *= change;
    if (math::fabs(change - 1) < 1e-16) break;
  }
  return h * a * gamma_density(a, x);
}

// The upper function for small x, without the cancellation of 1 - lower.
MB_DEVICE double upper_gamma_small(double a, double x) {
  double power = 1;
  double sum = 0;
  for (int n = 1; n < 60; n++) {
    power *= -x / n;
    const double term = power / (a + n);
    sum += term;
    if (math::fabs(term) <= 1e-17 * math::fabs(sum)) break;
  }
  const double logarithm = a * math::log(x) - math::lgamma(1 + a);
  return -math::expm1(logarithm) - math::exp(logarithm) * a * sum;
}

MB_DEVICE double lower_gamma(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0 || (a == 0 && x == 0)) return kNaN;
  if (a == 0) return 1;
  if (x == 0) return 0;
  if (a == kInfinity) return x == kInfinity ? kNaN : 0;
  if (x == kInfinity) return 1;
  return x > 1 && x > a ? 1 - gamma_fraction(a, x) : gamma_series(a, x);
}

MB_DEVICE double upper_gamma(double a, double x) {
  if (a != a || x != x || a < 0 || x < 0 || (a == 0 && x == 0)) return kNaN;
  if (a == 0) return 0;
  if (x == 0) return 1;
  if (a == kInfinity) return x == kInfinity ? kNaN : 1;
  if (x == kInfinity) return 0;
  if (x > 1.1) return x < a ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
  return x < a ? 1 - gamma_series(a, x) : upper_gamma_small(a, x);
}

}  // namespace mybackend::kernels
