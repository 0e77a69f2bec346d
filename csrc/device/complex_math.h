// math::f(x) for complex x, under the names numeric.h gives real ones.
#pragma once

#include "csrc/device/numeric.h"

namespace mybackend::math {

#define MB_COMPLEX_1(name)                  \
  template <class T>                        \
  MB_DEVICE complex<T> name(complex<T> x) { \
    return std::name(x);                    \
  }
MB_COMPLEX_1(sin)
MB_COMPLEX_1(cos)
MB_COMPLEX_1(tan)
MB_COMPLEX_1(asin)
MB_COMPLEX_1(acos)
MB_COMPLEX_1(atan)
MB_COMPLEX_1(sinh)
MB_COMPLEX_1(cosh)
MB_COMPLEX_1(tanh)
MB_COMPLEX_1(asinh)
MB_COMPLEX_1(acosh)
MB_COMPLEX_1(atanh)
MB_COMPLEX_1(exp)
MB_COMPLEX_1(expm1)
MB_COMPLEX_1(log)
MB_COMPLEX_1(log2)
MB_COMPLEX_1(log10)
MB_COMPLEX_1(log1p)
MB_COMPLEX_1(sqrt)
#undef MB_COMPLEX_1

template <class T>
MB_DEVICE complex<T> exp2(complex<T> x) {
  return std::exp(x * T(0.69314718055994530942));
}

template <class T>
MB_DEVICE complex<T> rsqrt(complex<T> x) {
  return complex<T>(1) / std::sqrt(x);
}

template <class T>
MB_DEVICE complex<T> pow(complex<T> x, complex<T> y) {
  return std::pow(x, y);
}

template <class T>
MB_DEVICE complex<T> conj(complex<T> x) {
  return complex<T>(x.real(), -x.imag());
}
template <class T>
MB_DEVICE T conj(T x) {
  return x;
}

}  // namespace mybackend::math
