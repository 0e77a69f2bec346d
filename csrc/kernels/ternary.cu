// where, addcmul, addcdiv and lerp. Called by csrc/aten/ternary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/ternary.h"

#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

struct Choose {
  template <class W>
  MB_DEVICE W operator()(bool condition, W x, W y) const {
    return condition ? x : y;
  }
};

// Elements move as opaque words of their size.
template <class W>
void choose(Stream stream, Operands<4> o) {
  o.dtype[0] = o.dtype[2] = o.dtype[3] = dtype_of<W>;
  device::pointwise<W, bool, W, W>(stream, o, Choose{});
}

template <class T>
struct AddProduct {
  T value;
  MB_DEVICE T operator()(T x, T y, T z) const { return T(x + value * y * z); }
};

template <class T>
struct AddQuotient {
  T value;
  MB_DEVICE T operator()(T x, T y, T z) const { return T(x + value * (y / z)); }
};

// From the nearer end, so that a weight of 1 gives exactly `to`.
template <class T>
MB_DEVICE T interpolate(T from, T to, T weight) {
  bool near_from;
  if constexpr (is_complex<T>) {
    near_from = weight.real() * weight.real() + weight.imag() * weight.imag() < Real<T>(0.25);
  } else {
    near_from = math::fabs(weight) < T(0.5);
  }
  return near_from ? T(from + weight * (to - from)) : T(to - (to - from) * (T(1) - weight));
}

template <class T>
struct LerpTo {
  T weight;
  MB_DEVICE T operator()(T from, T to) const { return interpolate(from, to, weight); }
};

MB_TERNARY(lerp_tensor_weight, FloatsAndComplexes, return interpolate(x, y, z);)

}  // namespace

MB_DEFINE_KERNEL(lerp_scalar_weight, (Stream stream, const Operands<3>& o, const Number& weight)) {
  visit_compute<FloatsAndComplexes>(o, "lerp", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, LerpTo<T>{weight.as<T>()});
  });
}

MB_DEFINE_KERNEL(where, (Stream stream, const Operands<4>& o)) {
  switch (size_of(o.dtype[0])) {
    case 1:
      return choose<uint8_t>(stream, o);
    case 2:
      return choose<uint16_t>(stream, o);
    case 4:
      return choose<uint32_t>(stream, o);
    case 8:
      return choose<uint64_t>(stream, o);
    default:
      return choose<complex<double>>(stream, o);
  }
}

MB_DEFINE_KERNEL(addcmul, (Stream stream, const Operands<4>& o, const Number& value)) {
  visit_compute<Arithmetic>(o, "addcmul", [&](auto type) {
    using T = typename decltype(type)::type;
    ternary<T>(stream, o, AddProduct<T>{value.as<T>()});
  });
}

MB_DEFINE_KERNEL(addcdiv, (Stream stream, const Operands<4>& o, const Number& value)) {
  visit_compute<FloatsAndComplexes>(o, "addcdiv", [&](auto type) {
    using T = typename decltype(type)::type;
    ternary<T>(stream, o, AddQuotient<T>{value.as<T>()});
  });
}

}  // namespace mybackend::kernels
