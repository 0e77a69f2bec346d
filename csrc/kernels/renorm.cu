// The factors by which renorm scales slices. Called by csrc/aten/renorm.cpp. Spec: test/ops/test_select.py.
#include "csrc/kernels/renorm.h"

#include "csrc/device/tile.h"

namespace mybackend::kernels {
namespace {

template <class T>
struct Factor {
  T largest;
  MB_DEVICE T operator()(T norm) const {
    const T scaled = largest / (norm + T(1e-7));
    return norm > largest ? scaled : T(1);
  }
};

}  // namespace

MB_DEFINE_KERNEL(renorm_factor, (Stream stream, const Operands<2>& o, double largest)) {
  visit<Floats>(compute_dtype(o.dtype[1]), "renorm_scale_factor", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise<T, T>(stream, o, Factor<T>{T(largest)});
  });
}

}  // namespace mybackend::kernels
