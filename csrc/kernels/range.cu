// arange and linspace: out[i] is a function of i.
// Called by csrc/aten/range.cpp. Spec: test/ops/test_factories.py.
#include "csrc/kernels/range.h"

#include "csrc/device/tile.h"

namespace mybackend::kernels {
namespace {

template <class T>
struct Arange {
  MB_DEVICE T operator()(int64_t i, T start, T step) const { return start + step * convert<T>(i); }
};

template <class T>
struct Linspace {
  int64_t steps;
  // Integers step in float, as upstream.
  using S = std::conditional_t<std::is_integral_v<T>, float, T>;
  MB_DEVICE T operator()(int64_t i, T start, T end) const {
    const S step = (convert<S>(end) - convert<S>(start)) / convert<S>(steps - 1);
    const S low = convert<S>(start) + step * convert<S>(i), high = convert<S>(end) - step * convert<S>(steps - 1 - i);
    return convert<T>(i < steps / 2 ? low : high);
  }
};

}  // namespace

MB_DEFINE_KERNEL(arange, (Stream stream, const Operands<3>& o)) {
  visit<Join<Floats, Integers>>(compute_dtype(o.dtype[0]), "arange", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise_indexed<T, T, T>(stream, o, Arange<T>{});
  });
}

MB_DEFINE_KERNEL(linspace, (Stream stream, const Operands<3>& o, int64_t steps)) {
  visit<Join<Floats, Integers, Complexes>>(compute_dtype(o.dtype[0]), "linspace", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise_indexed<T, T, T>(stream, o, Linspace<T>{steps});
  });
}

}  // namespace mybackend::kernels
