// Bessel functions, modified and not, and Airy's function, evaluated in double.
#pragma once

#include "csrc/kernels/special.h"

namespace mybackend::kernels {

constexpr double kEuler = 0.57721566490153286061;

struct BesselPair {
  double j, y;
};

// Hankel's asymptotic series, for x > 25.
template <int order>
MB_DEVICE BesselPair bessel_asymptotic(double x) {
  double even = 1;
  double odd = 0;
  double term = 1;
  for (int k = 1; k < 40 && math::fabs(term) > 1e-17; k++) {
    const double n = 2 * k - 1;
    term *= (4.0 * order - n * n) / (8 * k * x);
    const double sign = k & 2 ? -1 : 1;
    (k & 1 ? odd : even) += sign * term;
  }
  // sine and cosine of x - order * pi / 2 - pi / 4, times the square root of 2
  const double s = math::sin(x);
  const double c = math::cos(x);
  const double cosine = order == 0 ? c + s : s - c;
  const double sine = order == 0 ? s - c : -(s + c);
  const double scale = 1 / math::sqrt(kPi * x);
  return {scale * (even * cosine - odd * sine), scale * (even * sine + odd * cosine)};
}

// Miller's downward recurrence gives all J(k), normalised by J(0) + 2 J(2) + 2 J(4) + ... = 1, and Neumann's series in
// them Y. For 0 < x <= 25.
template <int order>
MB_DEVICE BesselPair bessel_recurrence(double x) {
  const double logarithm = math::log(x / 2) + kEuler;
  if (x < 1e-8) return order == 0 ? BesselPair{1, 2 / kPi * logarithm} : BesselPair{x / 2, -2 / (kPi * x)};
  double above = 0;
  double here = 1e-300;
  double normal = 0;
  double neumann = 0;
  double wanted = 0;
  for (int k = 70; k >= 0; k--) {  // here is J(k), above J(k + 1), up to a common factor
    if (math::fabs(here) > 1e200) {
      above *= 1e-200, here *= 1e-200, normal *= 1e-200, neumann *= 1e-200;
    }
    if (k % 2 == 0) normal += k == 0 ? here : 2 * here;
    if (k == order) wanted = here;
    const int m = (k - order) / 2;
    if (k > order && (k - order) % 2 == 0) {
      const double weight = (2.0 * m + order) / (double(m) * (m + order));
      neumann += m % 2 == 0 ? weight * here : -weight * here;
    }
    const double below = 2.0 * k / x * here - above;
    above = here;
    here = below;
  }
  const double j = wanted / normal;
  const double j0 = above / normal;
  const double y = 2 / kPi * ((logarithm - order) * j - neumann / normal - (order == 1 ? j0 / x : 0.0));
  return {j, y};
}

template <int order>
MB_DEVICE double bessel_j(double x) {
  const double z = math::fabs(x);
  if (z == 0) return order == 0 ? 1.0 : x;
  const double value = z == kInfinity ? 0.0 : z > 25 ? bessel_asymptotic<order>(z).j : bessel_recurrence<order>(z).j;
  return x != x ? x : order == 1 && x < 0 ? -value : value;
}

template <int order>
MB_DEVICE double bessel_y(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNaN;
  return x == kInfinity ? 0.0 : x > 25 ? bessel_asymptotic<order>(x).y : bessel_recurrence<order>(x).y;
}

// Modified Bessel function of order 0 or 1, times e^-|x|: its power series, whose terms are all positive, up to 20,
// then the asymptotic series, whose smallest term is e^-40 there.
template <int order>
MB_DEVICE double scaled_bessel_i(double x) {
  const double z = math::fabs(x);
  double value;
  if (z <= 20) {
    const double quarter = z * z / 4;
    double term = 1;
    double sum = 1;
    for (int k = 1; term > sum * 1e-17; k++) {
      term *= quarter / (double(k) * (k + order));
      sum += term;
    }
    value = sum * math::exp(-z) * (order == 1 ? z / 2 : 1.0);
  } else {
    double term = 1;
    double sum = 1;
    for (int k = 1; k < 30 && math::fabs(term) > 1e-17; k++) {
      const double odd = 2 * k - 1;
      term *= -(4.0 * order - odd * odd) / (8 * z * k);
      sum += term;
    }
    value = z == kInfinity ? 0.0 : sum / math::sqrt(2 * kPi * z);
  }
  return order == 1 && x < 0 ? -value : value;
}

// Modified Bessel function of the second kind of order 0 or 1, times e^x: the integral over t > 0 of
// e^(-x (cosh t - 1)) cosh(order t) by the trapezoidal rule, which converges exponentially once its step is small
// against the width of the integrand.
template <int order>
MB_DEVICE double scaled_bessel_k(double x) {
  if (!(x > 0)) return x == 0 ? kInfinity : kNaN;
  const double narrow = 0.6 / math::sqrt(x);
  const double step = narrow < 0.2 ? narrow : 0.2;
  double sum = 0.5;
  for (double k = 1;; k++) {
    const double t = k * step;
    const double half = math::sinh(0.5 * t);
    const double exponent = 2 * x * half * half - (order == 1 ? t : 0.0);
    const double term = math::exp(-exponent) * (order == 1 ? 0.5 + 0.5 * math::exp(-2 * t) : 1.0);
    sum += term;
    if (term <= sum * 1e-18 && 2 * x * half * half > t) break;
  }
  return sum * step;
}

// Ai: for x > 1 as an integral (DLMF 9.5.4's relation to K(1/3), by the trapezoidal rule), near 0 by its power series,
// below -8 by its asymptotic series.
MB_DEVICE double airy_ai(double x) {
  const double z = math::fabs(x);
  const double zeta = 2.0 / 3 * z * math::sqrt(z);
  if (x != x || z == kInfinity) return x != x || x < 0 ? kNaN : 0;
  if (x > 1) {
    const double narrow = 0.6 / math::sqrt(zeta);
    const double step = narrow < 0.2 ? narrow : 0.2;
    double sum = 0.5;
    for (double k = 1; k < 1000; k++) {
      const double t = k * step;
      const double half = math::sinh(0.5 * t);
      const double term = math::exp(-2 * zeta * half * half) * math::cosh(t / 3);
      sum += term;
      if (term <= sum * 1e-18) break;
    }
    return math::sqrt(x / 3) / kPi * sum * step * math::exp(-zeta);
  }
  if (x < -8) {
    double term = 1;
    double even = 1;
    double odd = 0;
    for (int k = 1; k < 30 && term > 1e-17; k++) {
      term *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1) * zeta);
      (k & 1 ? odd : even) += k & 2 ? -term : term;
    }
    const double angle = zeta + kPi / 4;
    return (math::sin(angle) * even - math::cos(angle) * odd) / math::sqrt(kPi * math::sqrt(z));
  }
  double f = 1;
  double g = x;
  double f_term = 1;
  double g_term = x;
  const double cube = x * x * x;
  for (int k = 1; k < 60; k++) {
    f_term *= cube / ((3.0 * k - 1) * (3.0 * k));
    g_term *= cube / ((3.0 * k) * (3.0 * k + 1));
    f += f_term;
    g += g_term;
  }
  return 0.35502805388781723926 * f - 0.25881940379280679841 * g;
}

}  // namespace mybackend::kernels
