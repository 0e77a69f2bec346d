// Special functions, the ones eager operators use (csrc/kernels). Included only by kernels that call one.
#pragma once

#include "csrc/kernels/bessel.h"
#include "csrc/kernels/error_function.h"
#include "csrc/kernels/special.h"

// A function of x that is evaluated in double.
#define MB_SPECIAL_1(name, expression) \
  template <class T>                   \
  MB_FN T mb_##name(T value) {         \
    using namespace mybackend;         \
    using namespace mybackend::kernels; \
    const double x = double(value);    \
    return T(expression);              \
  }
#define MB_SPECIAL_2(name, expression)  \
  template <class T>                    \
  MB_FN T mb_##name(T first, T second) { \
    using namespace mybackend::kernels; \
    const double x = double(first);     \
    const double y = double(second);    \
    return T(expression);               \
  }
MB_SPECIAL_1(digamma, digamma_of(x))
MB_SPECIAL_1(airy_ai, airy_ai(x))
MB_SPECIAL_1(bessel_j0, bessel_j<0>(x))
MB_SPECIAL_1(bessel_j1, bessel_j<1>(x))
MB_SPECIAL_1(bessel_y0, bessel_y<0>(x))
MB_SPECIAL_1(bessel_y1, bessel_y<1>(x))
MB_SPECIAL_1(i0, scaled_bessel_i<0>(x) * math::exp(math::fabs(x)))
MB_SPECIAL_1(i0e, scaled_bessel_i<0>(x))
MB_SPECIAL_1(i1, scaled_bessel_i<1>(x) * math::exp(math::fabs(x)))
MB_SPECIAL_1(i1e, scaled_bessel_i<1>(x))
MB_SPECIAL_1(modified_bessel_k0, scaled_bessel_k<0>(x) * math::exp(-x))
MB_SPECIAL_1(modified_bessel_k1, scaled_bessel_k<1>(x) * math::exp(-x))
MB_SPECIAL_1(scaled_modified_bessel_k0, scaled_bessel_k<0>(x))
MB_SPECIAL_1(scaled_modified_bessel_k1, scaled_bessel_k<1>(x))
MB_SPECIAL_1(ndtr, normal_cdf(x))
MB_SPECIAL_2(zeta, zeta_of(x, y))
MB_SPECIAL_2(igamma, lower_gamma(x, y))
MB_SPECIAL_2(igammac, upper_gamma(x, y))
#undef MB_SPECIAL_1
#undef MB_SPECIAL_2

template <class T>
MB_FN T mb_erfinv(T x) {
  return mybackend::kernels::inverse_error_function(x);
}
template <class T>
MB_FN T mb_erfcx(T x) {
  return mybackend::kernels::scaled_complement(x);
}
template <class T>
MB_FN T mb_ndtri(T x) {
  const T tail = x < T(0.5) ? x : T(1) - x;
  const T quantile = T(-mybackend::kernels::kSqrtTwo) * mybackend::kernels::inverse_complement(T(2) * tail);
  return x >= T(0) && x <= T(1) ? (x < T(0.5) ? quantile : -quantile) : T(MB_NAN);
}
template <class T>
MB_FN T mb_log_ndtr(T x) {
  const T z = x * T(mybackend::kernels::kSqrtHalf);
  if (x < T(-1)) return mb_log(mybackend::kernels::scaled_complement(-z) / T(2)) - z * z;
  return mb_log1p(-mb_erfc(z) / T(2));
}
template <class T>
MB_FN T mb_spherical_bessel_j0(T x) {
  const double z = double(x), s = z * z;
  if (s - s != 0) return T(z == z ? 0.0 : z);
  return T(s < 1e-4 ? 1 - s / 6 * (1 - s / 20) : mb_sin(z) / z);
}
