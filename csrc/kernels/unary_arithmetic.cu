// Signs, roots, complex parts and bits of one operand. Called by csrc/aten/unary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::kernels {
namespace {

template <class T>
MB_DEVICE T sign_of(T x) {
  return T(int(T(0) < x) - int(x < T(0)));
}

MB_UNARY(abs, Everything, {
  if constexpr (is_complex<T>) {
    return T(std::abs(x), 0);
  } else if constexpr (is_floating<T>) {
    return math::fabs(x);
  } else if constexpr (std::is_unsigned_v<T>) {
    return x;
  } else {
    return T(x < 0 ? -x : x);
  }
})

MB_UNARY(neg, Arithmetic, return T(-x);)

MB_UNARY(sign, RealsAndBool, {
  if constexpr (std::is_unsigned_v<T>) {
    return T(x != 0);
  } else {
    return sign_of(x);
  }
})

MB_UNARY(sgn, Complexes, {
  const Real<T> length = std::abs(x);
  return length == 0 ? T(0) : T(x / length);
})

MB_UNARY(sqrt, FloatsAndComplexes, return math::sqrt(x);)
MB_UNARY(rsqrt, FloatsAndComplexes, return math::rsqrt(x);)
MB_UNARY(reciprocal, FloatsAndComplexes, return T(1) / x;)
MB_UNARY(conj_physical, Everything, return math::conj(x);)

MB_UNARY(angle, Everything, {
  if constexpr (is_complex<T>) {
    return T(std::arg(x), 0);
  } else if constexpr (std::is_unsigned_v<T>) {
    return 0.0f;
  } else {
    using F = std::conditional_t<std::is_floating_point_v<T>, T, float>;
    return math::isnan(x) ? F(x) : x < 0 ? F(3.14159265358979323846) : F(0);
  }
})

MB_UNARY(bitwise_not, Bits, {
  if constexpr (std::is_same_v<T, bool>) {
    return !x;
  } else {
    return T(~x);
  }
})

MB_UNARY(logical_not, Everything, return !convert<bool>(x);)

MB_UNARY(signbit, Reals, {
  if constexpr (std::is_floating_point_v<T>) {
    return math::copysign(T(1), x) < 0;
  } else {
    return x < T(0);
  }
})

MB_UNARY(isposinf, Floats, return x == std::numeric_limits<T>::infinity();)
MB_UNARY(isneginf, Floats, return x == -std::numeric_limits<T>::infinity();)

// A missing replacement of an infinity is the largest number of what is stored, which T does not know.
template <class T>
struct NanToNum {
  using F = Real<T>;
  F nan, positive, negative;

  MB_DEVICE F part(F x) const {
    const F infinity = std::numeric_limits<F>::infinity();
    return x != x ? nan : x == infinity ? positive : x == -infinity ? negative : x;
  }
  MB_DEVICE T operator()(T x) const {
    if constexpr (is_complex<T>) {
      return T(part(x.real()), part(x.imag()));
    } else {
      return part(x);
    }
  }
};

double largest(DType dtype) {
  switch (dtype) {
    case DType::Half:
    case DType::ComplexHalf:
      return 65504.0;
    case DType::BFloat16:
      return 3.3895313892515355e38;
    case DType::Double:
    case DType::ComplexDouble:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

MB_DEFINE_KERNEL(nan_to_num,
                 (Stream stream, const Operands<2>& o, double nan, const double* positive, const double* negative)) {
  visit_compute<FloatsAndComplexes>(o, "nan_to_num", [&](auto type) {
    using T = typename decltype(type)::type;
    using F = Real<T>;
    const double most = largest(o.dtype[1]);
    unary<T>(stream, o, NanToNum<T>{F(nan), F(positive ? *positive : most), F(negative ? *negative : -most)});
  });
}

}  // namespace mybackend::kernels
