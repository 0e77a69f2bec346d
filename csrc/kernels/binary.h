// Entry points of csrc/kernels/binary_*.cu: out = f(x, y).
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/operands.h"

// The functions without parameters, grouped by the file that defines them.
// clang-format off
#define MB_BINARY_ARITHMETIC(M) \
  M(mul) M(div_true) M(maximum) M(minimum) M(fmax) M(fmin) M(tanh_backward) M(sigmoid_backward)
#define MB_BINARY_MATHS(M) \
  M(atan2) M(hypot) M(copysign) M(nextafter) M(logaddexp) M(logaddexp2) M(xlogy) M(xlog1py) M(heaviside)
#define MB_BINARY_BITS(M) \
  M(bitwise_and)          \
  M(bitwise_or) M(bitwise_xor) M(lshift) M(rshift) M(logical_and) M(logical_or) M(logical_xor) M(gcd) M(lcm)
#define MB_BINARY_COMPARISON(M) M(eq) M(ne) M(lt) M(le) M(gt) M(ge)
#define MB_BINARY_SPECIAL(M) M(zeta) M(igamma) M(igammac)
#define MB_BINARY_POLYNOMIAL(M)                                                                   \
  M(chebyshev_polynomial_t)                                                                       \
  M(chebyshev_polynomial_u)                                                                       \
  M(chebyshev_polynomial_v)                                                                       \
  M(chebyshev_polynomial_w) M(shifted_chebyshev_polynomial_t) M(shifted_chebyshev_polynomial_u)   \
      M(shifted_chebyshev_polynomial_v) M(shifted_chebyshev_polynomial_w) M(hermite_polynomial_h) \
          M(hermite_polynomial_he) M(laguerre_polynomial_l) M(legendre_polynomial_p)
// clang-format on

// clang-format off
#define MB_BINARY_KERNELS(M) \
  MB_BINARY_ARITHMETIC(M)    \
  MB_BINARY_MATHS(M) MB_BINARY_BITS(M) MB_BINARY_COMPARISON(M) MB_BINARY_SPECIAL(M) MB_BINARY_POLYNOMIAL(M)
// clang-format on

// Integer division by zero is reported to `errors` (kDivisionByZero), as upstream's CPU kernels do.
// clang-format off
#define MB_BINARY_DIVISION(M) M(div_floor) M(div_trunc) M(remainder) M(fmod)
// clang-format on

namespace mybackend::kernels {
using device::Stream;

#define MB_DECLARE_BINARY(name) MB_DECLARE_KERNEL(name, void(Stream stream, const Operands<3>& operands));
MB_BINARY_KERNELS(MB_DECLARE_BINARY)
#undef MB_DECLARE_BINARY

// clang-format off
#define MB_DECLARE_DIVISION(name) \
  MB_DECLARE_KERNEL(name, void(Stream stream, const Operands<3>& operands, device::ErrorRecord* errors));
// clang-format on
MB_BINARY_DIVISION(MB_DECLARE_DIVISION)
#undef MB_DECLARE_DIVISION

// x + alpha * y; a logical or for bool.
MB_DECLARE_KERNEL(add, void(Stream stream, const Operands<3>& operands, const Number& alpha));
MB_DECLARE_KERNEL(sub, void(Stream stream, const Operands<3>& operands, const Number& alpha));

MB_DECLARE_KERNEL(pow_tensor_tensor, void(Stream stream, const Operands<3>& operands));
MB_DECLARE_KERNEL(pow_tensor_scalar, void(Stream stream, const Operands<2>& operands, const Number& exponent));

// grad / (x * (1 - x)) inside [eps, 1 - eps], else 0 (NaN outside [0, 1] where eps is negative); operands grad, x.
MB_DECLARE_KERNEL(logit_backward, void(Stream stream, const Operands<3>& operands, double eps));

// Two reals to one complex number.
MB_DECLARE_KERNEL(complex_of, void(Stream stream, const Operands<3>& operands));
MB_DECLARE_KERNEL(polar, void(Stream stream, const Operands<3>& operands));

}  // namespace mybackend::kernels
