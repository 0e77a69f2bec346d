// Mathematical functions of two floating-point operands. Called by csrc/aten/binary.cpp. Spec:
// test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

MB_BINARY(atan2, Floats, return math::atan2(x, y);)
MB_BINARY(hypot, Floats, return math::hypot(x, y);)
MB_BINARY(copysign, Floats, return math::copysign(x, y);)
MB_BINARY(xlogy, Floats, return y != y ? y : x == 0 ? T(0) : x * math::log(y);)
MB_BINARY(xlog1py, Floats, return y != y ? y : x == 0 ? T(0) : x * math::log1p(y);)

MB_BINARY(heaviside, RealsAndBool, return x == T(0) ? y : T(x > T(0));)

// log(e^x + e^y) from the larger of the two, so that nothing overflows. Equal infinities are their own result.
MB_BINARY(logaddexp, FloatsAndComplexes, {
  if constexpr (is_complex<T>) {
    const bool x_leads = x.real() != x.real() || x.real() >= y.real();
    const T high = x_leads ? x : y;
    const T low = x_leads ? y : x;
    const bool same_infinity = high.real() == low.real() && high.real() - high.real() != 0;
    if (same_infinity && high.real() > 0) return math::log(math::exp(x) + math::exp(y));
    if (same_infinity && high.imag() == high.imag()) return high;
    return high + math::log1p(math::exp(low - high));
  } else {
    const T high = x < y ? y : x;
    return x == y && x - x != 0 ? x : high + math::log1p(math::exp(-math::fabs(x - y)));
  }
})

MB_BINARY(logaddexp2, Floats, {
  const T high = x < y ? y : x;
  const T inverse_log2 = T(1.44269504088896340736);
  return x == y && x - x != 0 ? x : high + math::log1p(math::exp2(-math::fabs(x - y))) * inverse_log2;
})

// The neighbours of a half or bfloat16 are those of its own type. Numbers are ordered as their bits are, once the bits
// of negative ones are turned round.
template <class T>
struct NextAfter {
  MB_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      return math::nextafter(x, y);
    } else {
      const float from = float(x);
      const float to = float(y);
      if (from != from || to != to) return T(from + to);
      if (from == to) return y;
      if (from == 0) return T(uint16_t(to < 0 ? 0x8001 : 1), T::from_bits());
      const bool away = (from < to) == (from > 0);
      return T(uint16_t(away ? x.x + 1 : x.x - 1), T::from_bits());
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(nextafter, (Stream stream, const Operands<3>& o)) {
  visit<Join<Floats, Halves>>(o.compute, "nextafter", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, NextAfter<T>{});
  });
}

}  // namespace mybackend::kernels
