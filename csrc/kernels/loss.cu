// Pointwise losses and their gradients. Called by csrc/aten/loss_pointwise.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/loss.h"

#include "csrc/device/errors.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

MB_BINARY(mse, Arithmetic, return T((x - y) * (x - y));)

template <class T>
struct SmoothL1 {
  T beta;
  MB_DEVICE T operator()(T x, T y) const {
    const T z = math::fabs(x - y);
    return z < beta ? T(0.5) * z * z / beta : z - T(0.5) * beta;
  }
};

template <class T>
struct Huber {
  T delta;
  MB_DEVICE T operator()(T x, T y) const {
    const T z = math::fabs(x - y);
    return z <= delta ? T(0.5) * z * z : delta * (z - T(0.5) * delta);
  }
};

template <class T>
struct MseBackward {
  T scale;
  MB_DEVICE T operator()(T x, T y, T grad) const { return scale * (x - y) * grad; }
};

template <class T>
struct SmoothL1Backward {
  T scale, beta;
  MB_DEVICE T operator()(T x, T y, T grad) const {
    const T z = x - y;
    return z <= -beta ? -scale * grad : z >= beta ? scale * grad : scale * z * grad / beta;
  }
};

template <class T>
struct HuberBackward {
  T scale, delta;
  MB_DEVICE T operator()(T x, T y, T grad) const {
    const T z = x - y;
    return z <= -delta ? -scale * grad * delta : z >= delta ? scale * grad * delta : scale * z * grad;
  }
};

// Logarithms are cut at -100, so that the loss stays finite where input is 0 or 1.
template <class T>
struct BinaryCrossEntropy {
  device::ErrorRecord* errors;
  MB_DEVICE T operator()(T x, T y) const {
    if (!(x >= T(0) && x <= T(1)) && x == x) device::report(errors, device::kOutsideUnitInterval);
    const T of_zero = math::log1p(-x);
    const T of_one = math::log(x);
    return (y - T(1)) * (of_zero < T(-100) ? T(-100) : of_zero) - y * (of_one < T(-100) ? T(-100) : of_one);
  }
};

MB_TERNARY(binary_cross_entropy_backward, Floats, {  // grad, input, target
  const T spread = (T(1) - y) * y;
  return x * (y - z) / (spread < T(1e-12) ? T(1e-12) : spread);
})

}  // namespace

MB_DEFINE_KERNEL(smooth_l1, (Stream stream, const Operands<3>& o, double beta)) {
  visit_compute<Floats>(o, "smooth_l1", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, SmoothL1<T>{T(beta)});
  });
}
MB_DEFINE_KERNEL(huber, (Stream stream, const Operands<3>& o, double delta)) {
  visit_compute<Floats>(o, "huber", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, Huber<T>{T(delta)});
  });
}
MB_DEFINE_KERNEL(mse_backward, (Stream stream, const Operands<4>& o, double scale)) {
  visit_compute<FloatsAndComplexes>(o, "mse_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    ternary<T>(stream, o, MseBackward<T>{T(scale)});
  });
}
MB_DEFINE_KERNEL(smooth_l1_backward, (Stream stream, const Operands<4>& o, double scale, double beta)) {
  visit_compute<Floats>(o, "smooth_l1_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    ternary<T>(stream, o, SmoothL1Backward<T>{T(scale), T(beta)});
  });
}
MB_DEFINE_KERNEL(huber_backward, (Stream stream, const Operands<4>& o, double scale, double delta)) {
  visit_compute<Floats>(o, "huber_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    ternary<T>(stream, o, HuberBackward<T>{T(scale), T(delta)});
  });
}
MB_DEFINE_KERNEL(binary_cross_entropy, (Stream stream, const Operands<3>& o, device::ErrorRecord* errors)) {
  visit_compute<Floats>(o, "binary_cross_entropy", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, BinaryCrossEntropy<T>{errors});
  });
}

}  // namespace mybackend::kernels
