// GELU, x * Phi(x), by erf or by tanh, and its gradients. Called by csrc/aten/activation.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/activation.h"
#include "csrc/kernels/error_function.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;
constexpr double kTanhScale = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kTanhCubic = 0.044715;

struct Gelu {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return x * normal_cdf(x);
  }
};

struct GeluTanh {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return T(0.5) * x * (T(1) + math::tanh(T(kTanhScale) * (x + T(kTanhCubic) * x * x * x)));
  }
};

MB_DEVICE double bell(double x) {
  return math::exp(-0.5 * x * x);
}
MB_DEVICE float bell(float x) {
  const float power = -0.5f * x * x;
  return power > -80.0f ? exp_below_zero(power) : power == power ? 0.0f : power;
}

struct GeluBackward {
  template <class T>
  MB_DEVICE T operator()(T grad, T x) const {
    return grad * (normal_cdf(x) + x * (bell(x) * T(kInverseSqrtTwoPi)));
  }
};

struct GeluTanhBackward {
  template <class T>
  MB_DEVICE T operator()(T grad, T x) const {
    const T t = math::tanh(T(kTanhScale) * (x + T(kTanhCubic) * x * x * x));
    const T inner = T(kTanhScale) * (T(1) + T(3 * kTanhCubic) * x * x);
    return grad * (T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner);
  }
};

}  // namespace

MB_DEFINE_KERNEL(gelu, (Stream stream, const Operands<2>& o, bool tanh)) {
  visit_compute<Floats>(o, "gelu", [&](auto type) {
    using T = typename decltype(type)::type;
    if (tanh) return unary<T>(stream, o, GeluTanh{});
    unary<T>(stream, o, Gelu{});
  });
}

MB_DEFINE_KERNEL(gelu_backward, (Stream stream, const Operands<3>& o, bool tanh)) {
  visit_compute<Floats>(o, "gelu_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    if (tanh) return binary<T>(stream, o, GeluTanhBackward{});
    binary<T>(stream, o, GeluBackward{});
  });
}

}  // namespace mybackend::kernels
