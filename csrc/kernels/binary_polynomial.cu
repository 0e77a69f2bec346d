// Orthogonal polynomials of degree n at x, by their three-term recurrences. Called by csrc/aten/binary.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

// p(0) = 1, p(1) = `first`, p(k) = next(k, p(k - 1), p(k - 2)). A negative degree gives 0.
template <class T, class Next>
MB_DEVICE T polynomial(T n, T first, Next next) {
  if (n != n) return n;
  const int64_t degree = int64_t(n);
  if (degree < 1) return T(degree == 0);
  T before = T(1);
  T last = first;
  for (int64_t k = 2; k <= degree && last == last; k++) {
    const T value = next(T(k), last, before);
    before = last;
    last = value;
  }
  return last;
}

// The four kinds of Chebyshev polynomials differ in their first one only.
template <class T>
struct Chebyshev {
  T x;
  MB_DEVICE T operator()(T, T p, T q) const { return T(2) * x * p - q; }
};
template <class T>
struct Hermite {  // the physicists'
  T x;
  MB_DEVICE T operator()(T k, T p, T q) const { return T(2) * (x * p - (k - T(1)) * q); }
};
template <class T>
struct HermiteE {  // the probabilists'
  T x;
  MB_DEVICE T operator()(T k, T p, T q) const { return x * p - (k - T(1)) * q; }
};
template <class T>
struct Laguerre {
  T x;
  MB_DEVICE T operator()(T k, T p, T q) const { return ((T(2) * k - T(1) - x) * p - (k - T(1)) * q) / k; }
};
template <class T>
struct Legendre {
  T x;
  MB_DEVICE T operator()(T k, T p, T q) const { return ((T(2) * k - T(1)) * x * p - (k - T(1)) * q) / k; }
};

MB_BINARY(chebyshev_polynomial_t, Floats, return polynomial(y, x, Chebyshev<T>{x});)
MB_BINARY(chebyshev_polynomial_u, Floats, return polynomial(y, T(2) * x, Chebyshev<T>{x});)
MB_BINARY(chebyshev_polynomial_v, Floats, return polynomial(y, T(2) * x - T(1), Chebyshev<T>{x});)
MB_BINARY(chebyshev_polynomial_w, Floats, return polynomial(y, T(2) * x + T(1), Chebyshev<T>{x});)

// The shifted ones are those at z = 2 x - 1.
MB_BINARY(shifted_chebyshev_polynomial_t, Floats, {
  const T z = T(2) * x - T(1);
  return polynomial(y, z, Chebyshev<T>{z});
})
MB_BINARY(shifted_chebyshev_polynomial_u, Floats, {
  const T z = T(2) * x - T(1);
  return polynomial(y, T(2) * z, Chebyshev<T>{z});
})
MB_BINARY(shifted_chebyshev_polynomial_v, Floats, {
  const T z = T(2) * x - T(1);
  return polynomial(y, T(2) * z - T(1), Chebyshev<T>{z});
})
MB_BINARY(shifted_chebyshev_polynomial_w, Floats, {
  const T z = T(2) * x - T(1);
  return polynomial(y, T(2) * z + T(1), Chebyshev<T>{z});
})

MB_BINARY(hermite_polynomial_h, Floats, return polynomial(y, T(2) * x, Hermite<T>{x});)
MB_BINARY(hermite_polynomial_he, Floats, return polynomial(y, x, HermiteE<T>{x});)
MB_BINARY(laguerre_polynomial_l, Floats, return polynomial(y, T(1) - x, Laguerre<T>{x});)
MB_BINARY(legendre_polynomial_p, Floats, return polynomial(y, x, Legendre<T>{x});)

}  // namespace
}  // namespace mybackend::kernels
