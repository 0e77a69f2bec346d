// Sums, products, quotients and extrema of two operands. Called by csrc/aten/binary.cpp. Spec:
// test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

struct Plus {
  template <class T>
  MB_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, bool>) {
      return x || y;
    } else {
      return T(x + y);
    }
  }
};

struct Minus {
  template <class T>
  MB_DEVICE T operator()(T x, T y) const {
    return T(x - y);
  }
};

template <class T>
struct PlusScaled {
  T alpha;
  MB_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_same_v<T, bool>) {
      return x || (alpha && y);
    } else {
      return T(x + alpha * y);
    }
  }
};

template <class T>
struct MinusScaled {
  T alpha;
  MB_DEVICE T operator()(T x, T y) const { return T(x - alpha * y); }
};

MB_BINARY(mul, Everything, {
  if constexpr (std::is_same_v<T, bool>) {
    return x && y;
  } else {
    return T(x * y);
  }
})

MB_BINARY(div_true, FloatsAndComplexes, return x / y;)

// NaN wins.
MB_BINARY(maximum, RealsAndBool, {
  if constexpr (is_floating<T>) {
    return x != x ? x : !(y <= x) ? y : x;
  } else {
    return x < y ? y : x;
  }
})
MB_BINARY(minimum, RealsAndBool, {
  if constexpr (is_floating<T>) {
    return x != x ? x : !(y >= x) ? y : x;
  } else {
    return y < x ? y : x;
  }
})

// A number wins over NaN.
MB_BINARY(fmax, RealsAndBool, return x != x || x < y ? y : x;)
MB_BINARY(fmin, RealsAndBool, return x != x || y < x ? y : x;)

// x is the gradient, y the function's value.
MB_BINARY(tanh_backward, FloatsAndComplexes, return x * math::conj(T(T(1) - y * y));)
MB_BINARY(sigmoid_backward, FloatsAndComplexes, return x * math::conj(T((T(1) - y) * y));)

template <class T>
struct LogitBackward {
  T low, high, outside;
  MB_DEVICE T operator()(T grad, T x) const { return x < low || x > high ? outside : grad / (x * (T(1) - x)); }
};

template <class T>
struct ComplexOf {
  MB_DEVICE complex<T> operator()(T real, T imaginary) const { return complex<T>(real, imaginary); }
};

template <class T>
struct Polar {
  MB_DEVICE complex<T> operator()(T length, T angle) const {
    return complex<T>(length * math::cos(angle), length * math::sin(angle));
  }
};

}  // namespace

MB_DEFINE_KERNEL(add, (Stream stream, const Operands<3>& o, const Number& alpha)) {
  visit_compute<Everything>(o, "add", [&](auto type) {
    using T = typename decltype(type)::type;
    const T scale = alpha.as<T>();
    if (scale == T(1)) return binary<T>(stream, o, Plus{});
    binary<T>(stream, o, PlusScaled<T>{scale});
  });
}

MB_DEFINE_KERNEL(sub, (Stream stream, const Operands<3>& o, const Number& alpha)) {
  visit_compute<Arithmetic>(o, "sub", [&](auto type) {
    using T = typename decltype(type)::type;
    const T scale = alpha.as<T>();
    if (scale == T(1)) return binary<T>(stream, o, Minus{});
    binary<T>(stream, o, MinusScaled<T>{scale});
  });
}

MB_DEFINE_KERNEL(logit_backward, (Stream stream, const Operands<3>& o, double eps)) {
  visit_compute<Floats>(o, "logit_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    if (eps < 0) return binary<T>(stream, o, LogitBackward<T>{T(0), T(1), std::numeric_limits<T>::quiet_NaN()});
    binary<T>(stream, o, LogitBackward<T>{T(eps), T(1) - T(eps), T(0)});
  });
}

MB_DEFINE_KERNEL(complex_of, (Stream stream, const Operands<3>& o)) {
  visit<Floats>(compute_dtype(o.dtype[1]), "complex", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, ComplexOf<T>{});
  });
}

MB_DEFINE_KERNEL(polar, (Stream stream, const Operands<3>& o)) {
  visit<Floats>(compute_dtype(o.dtype[1]), "polar", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, Polar<T>{});
  });
}

}  // namespace mybackend::kernels
