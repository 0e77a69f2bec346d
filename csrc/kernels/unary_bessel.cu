// Bessel functions of one operand and Airy's. Called by csrc/aten/unary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/bessel.h"
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(special_airy_ai, Floats, return T(airy_ai(x));)
MB_UNARY(special_bessel_j0, Floats, return T(bessel_j<0>(x));)
MB_UNARY(special_bessel_j1, Floats, return T(bessel_j<1>(x));)
MB_UNARY(special_bessel_y0, Floats, return T(bessel_y<0>(x));)
MB_UNARY(special_bessel_y1, Floats, return T(bessel_y<1>(x));)
MB_UNARY(special_modified_bessel_k0, Floats, return T(scaled_bessel_k<0>(x) * math::exp(-double(x)));)
MB_UNARY(special_modified_bessel_k1, Floats, return T(scaled_bessel_k<1>(x) * math::exp(-double(x)));)
MB_UNARY(special_scaled_modified_bessel_k0, Floats, return T(scaled_bessel_k<0>(x));)
MB_UNARY(special_scaled_modified_bessel_k1, Floats, return T(scaled_bessel_k<1>(x));)
MB_UNARY(i0, Floats, return T(scaled_bessel_i<0>(x) * math::exp(math::fabs(double(x))));)
MB_UNARY(special_i0e, Floats, return T(scaled_bessel_i<0>(x));)
MB_UNARY(special_i1, Floats, return T(scaled_bessel_i<1>(x) * math::exp(math::fabs(double(x))));)
MB_UNARY(special_i1e, Floats, return T(scaled_bessel_i<1>(x));)

MB_UNARY(special_spherical_bessel_j0, Floats, {
  const double z = double(x);
  const double s = z * z;
  return T(s - s != 0 ? (z == z ? 0.0 : z) : s < 1e-4 ? 1 - s / 6 * (1 - s / 20) : math::sin(z) / z);
})

}  // namespace
}  // namespace mybackend::kernels
