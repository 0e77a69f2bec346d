// Powers. Integers by squaring; the common exponents of a scalar without pow. Called by csrc/aten/binary.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

template <class T>
MB_DEVICE T integer_power(T base, T exponent) {
  using U = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? T(1) : base == -1 ? T(exponent % 2 == 0 ? 1 : -1) : T(0);
  }
  U result = 1;
  U square = U(base);
  for (U left = U(exponent); left != 0; left = U(left >> 1)) {
    if (left & 1) result = U(result * square);
    square = U(square * square);
  }
  return T(result);
}

MB_BINARY(pow_tensor_tensor, Arithmetic, {
  if constexpr (std::is_integral_v<T>) {
    return integer_power(x, y);
  } else {
    return math::pow(x, y);
  }
})

template <class T>
struct PowerOf {
  T exponent;
  MB_DEVICE T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return integer_power(x, exponent);
    } else {
      return math::pow(x, exponent);
    }
  }
};

struct Square {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return T(x * x);
  }
};
struct Cube {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return T(x * x * x);
  }
};
struct InverseSquare {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return T(1) / (x * x);
  }
};
struct Inverse {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return T(1) / x;
  }
};
struct Root {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return math::sqrt(x);
  }
};
struct InverseRoot {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return math::rsqrt(x);
  }
};

}  // namespace

MB_DEFINE_KERNEL(pow_tensor_scalar, (Stream stream, const Operands<2>& o, const Number& number)) {
  visit_compute<Arithmetic>(o, "pow", [&](auto type) {
    using T = typename decltype(type)::type;
    const T exponent = number.as<T>();
    if (exponent == T(2)) return unary<T>(stream, o, Square{});
    if (exponent == T(3)) return unary<T>(stream, o, Cube{});
    if constexpr (!std::is_integral_v<T>) {
      if (exponent == T(-1)) return unary<T>(stream, o, Inverse{});
      if (exponent == T(-2)) return unary<T>(stream, o, InverseSquare{});
      if (exponent == T(0.5)) return unary<T>(stream, o, Root{});
      if (exponent == T(-0.5)) return unary<T>(stream, o, InverseRoot{});
    }
    unary<T>(stream, o, PowerOf<T>{exponent});
  });
}

}  // namespace mybackend::kernels
