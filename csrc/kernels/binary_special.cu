// Zeta and incomplete gamma functions. Called by csrc/aten/binary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/special.h"

namespace mybackend::kernels {
namespace {

MB_BINARY(zeta, Floats, return T(zeta_of(double(x), double(y)));)
MB_BINARY(igamma, Floats, return T(lower_gamma(double(x), double(y)));)
MB_BINARY(igammac, Floats, return T(upper_gamma(double(x), double(y)));)

}  // namespace
}  // namespace mybackend::kernels
