// math::exp_down(x): e^x for x <= 0, the exponential of softmax and attention (arguments up to 88 are fine too).
//
// On the host it is written out for float, so that it is inlined into the loop: libmvec's expf is a call, which made up
// two thirds of attention's time. x = n ln 2 + r with |r| <= ln 2 / 2; e^r by a minimax polynomial (the coefficients of
// Cephes' expf, Moshier 1989), at most 1.5 ulp; 2^n by moving the exponent. Below -87.3 the result is 0 (no
// subnormals); NaN stays NaN.
#pragma once

#include "csrc/device/widen.h"

namespace mybackend::math {

MB_DEVICE double exp_down(double x) {
  return exp(x);
}

#if defined(__CUDACC__)

MB_DEVICE float exp_down(float x) {
  return exp(x);
}

#else

MB_DEVICE float exp_down(float x) {
  using device::detail::bits;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float power = bits<float>((bits<uint32_t>(shifted) << 23) + 0x3f800000u);
  return x < -87.3f ? 0.0f : p * power;
}

#endif

}  // namespace mybackend::math
