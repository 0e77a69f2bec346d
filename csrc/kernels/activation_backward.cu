// Gradients of activation functions. Called by csrc/aten/activation.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/activation.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

template <class T>
MB_DEVICE T logistic(T x) {
  return T(1) / (T(1) + math::exp(-x));
}

MB_BINARY(silu_backward, FloatsAndComplexes, {  // grad, x
  const T s = logistic(y);
  if constexpr (is_complex<T>) {
    return x * math::conj(T(s * (T(1) + y * (T(1) - s))));
  } else {
    return x * s * (T(1) + y * (T(1) - s));
  }
})

MB_BINARY(mish_backward, Floats, {  // grad, x
  const T w = math::exp(y < T(20) ? y : T(20));
  const T rise = w * (w + T(2));
  const T inverse = T(1) / (rise + T(2));
  const T t = rise * inverse;
  // 1 - t^2 = (1 - t) (1 + t), and 1 - t = 2 / (rise + 2)
  const T slope = T(2) * inverse * (T(1) + t) * (w / (T(1) + w));
  return x * (t + y * slope);
})

MB_BINARY(hardsigmoid_backward, Floats, return y > T(-3) && y < T(3) ? x / T(6) : T(0);)

MB_BINARY(hardswish_backward, Floats,  // grad, x
          return y <= T(-3) ? T(0)
                 : y < T(3) ? x * (y / T(3) + T(0.5))
                            : x;)

MB_BINARY(log_sigmoid_backward, Floats, {  // x, grad
  const T z = math::exp(-math::fabs(x));
  return y * ((x < T(0) ? T(1) : T(0)) - (x < T(0) ? T(1) : T(-1)) * (z / (T(1) + z)));
})

MB_BINARY(prelu_backward_weight, Floats, return x > T(0) ? T(0) : x * y;)  // x, grad
MB_TERNARY(prelu_backward_self, Floats, return x > T(0) ? z : y * z;)      // x, weight, grad

MB_BINARY(glu_backward_gated, Floats, return y * logistic(x);)  // gate, grad
MB_TERNARY(glu_backward_gate, Floats, {                         // gated, gate, grad
  const T s = logistic(y);
  return (T(1) - s) * s * z * x;
})

struct GluJvp {
  template <class T>
  MB_DEVICE T operator()(T result, T gate, T d_gated, T d_gate) const {
    const T s = logistic(gate);
    return d_gated * s + result * (d_gate - s * d_gate);
  }
};

template <class T>
struct EluBackward {
  T negative, positive, negative_input;
  MB_DEVICE T operator()(T grad, T x) const {
    return x <= T(0) ? grad * negative_input * negative * math::exp(x * negative_input) : grad * positive;
  }
};

template <class T>
struct EluBackwardOfResult {
  T negative, positive, negative_input;
  MB_DEVICE T operator()(T grad, T result) const {
    return result <= T(0) ? grad * negative_input * (result + negative) : grad * positive;
  }
};

template <class T>
struct SoftplusBackward {
  T beta, threshold;
  MB_DEVICE T operator()(T grad, T x) const {
    return x * beta > threshold ? grad : grad / (T(1) + math::exp(-x * beta));
  }
};

template <class T>
struct ShrinkBackward {
  T lambd;
  MB_DEVICE T operator()(T grad, T x) const { return x >= -lambd && x <= lambd ? T(0) : grad; }
};

template <class T>
struct HardtanhBackward {
  T low, high;
  MB_DEVICE T operator()(T grad, T x) const { return x <= low || x >= high ? T(0) : grad; }
};

template <class T>
struct LeakyReluBackward {
  T slope;
  MB_DEVICE T operator()(T x, T grad) const { return x > T(0) ? grad : grad * slope; }
};

// Launches F<T>{T(parameters)...} over two operands.
template <template <class> class F, class... Parameters>
void with_parameters(Stream stream, const Operands<3>& o, const char* name, Parameters... parameters) {
  visit_compute<Floats>(o, name, [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, F<T>{T(parameters)...});
  });
}

}  // namespace

MB_DEFINE_KERNEL(glu_jvp, (Stream stream, const Operands<5>& o)) {
  visit_compute<Floats>(o, "glu_jvp", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise<T, T, T, T, T>(stream, o, GluJvp{});
  });
}

MB_DEFINE_KERNEL(elu_backward, (Stream stream, const Operands<3>& o, double alpha, double scale, double input_scale,
                                bool is_result)) {
  if (is_result)
    return with_parameters<EluBackwardOfResult>(stream, o, "elu_backward", alpha * scale, scale, input_scale);
  with_parameters<EluBackward>(stream, o, "elu_backward", alpha * scale, scale, input_scale);
}
MB_DEFINE_KERNEL(softplus_backward, (Stream stream, const Operands<3>& o, double beta, double threshold)) {
  with_parameters<SoftplusBackward>(stream, o, "softplus_backward", beta, threshold);
}
MB_DEFINE_KERNEL(shrink_backward, (Stream stream, const Operands<3>& o, double lambd)) {
  with_parameters<ShrinkBackward>(stream, o, "shrink_backward", lambd);
}
MB_DEFINE_KERNEL(hardtanh_backward, (Stream stream, const Operands<3>& o, double low, double high)) {
  with_parameters<HardtanhBackward>(stream, o, "hardtanh_backward", low, high);
}
MB_DEFINE_KERNEL(leaky_relu_backward, (Stream stream, const Operands<3>& o, double slope)) {
  with_parameters<LeakyReluBackward>(stream, o, "leaky_relu_backward", slope);
}

}  // namespace mybackend::kernels
