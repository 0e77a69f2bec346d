// Clamps to numbers and to tensors. Called by csrc/aten/ternary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/ternary.h"

namespace mybackend::kernels {
namespace {

// The comparisons are false for a NaN in x, which therefore stays; a NaN bound replaces x.
template <class T>
MB_DEVICE T at_least(T x, T low) {
  return x < low || low != low ? low : x;
}
template <class T>
MB_DEVICE T at_most(T x, T high) {
  return x > high || high != high ? high : x;
}

MB_TERNARY(clamp, Reals, {
  const T clamped = at_most(at_least(x, y), z);
  return x != x ? x : y != y ? y : clamped;
})

template <class T>
struct Between {
  T low, high;
  MB_DEVICE T operator()(T x) const {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

template <class T>
struct AtLeast {
  T low;
  MB_DEVICE T operator()(T x) const { return x < low ? low : x; }
};

template <class T>
struct AtMost {
  T high;
  MB_DEVICE T operator()(T x) const { return x > high ? high : x; }
};

}  // namespace

MB_DEFINE_KERNEL(clamp_scalar, (Stream stream, const Operands<2>& o, const Number& low, const Number& high)) {
  visit_compute<Reals>(o, "clamp", [&](auto type) {
    using T = typename decltype(type)::type;
    unary<T>(stream, o, Between<T>{low.as<T>(), high.as<T>()});
  });
}

MB_DEFINE_KERNEL(clamp_min_scalar, (Stream stream, const Operands<2>& o, const Number& low)) {
  visit_compute<Reals>(o, "clamp_min", [&](auto type) {
    using T = typename decltype(type)::type;
    unary<T>(stream, o, AtLeast<T>{low.as<T>()});
  });
}

MB_DEFINE_KERNEL(clamp_max_scalar, (Stream stream, const Operands<2>& o, const Number& high)) {
  visit_compute<Reals>(o, "clamp_max", [&](auto type) {
    using T = typename decltype(type)::type;
    unary<T>(stream, o, AtMost<T>{high.as<T>()});
  });
}

}  // namespace mybackend::kernels
