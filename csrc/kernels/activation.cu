// Activation functions. Called by csrc/aten/activation.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/activation.h"

#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

MB_UNARY(silu, FloatsAndComplexes, return x / (T(1) + math::exp(-x));)

// tanh(log(1 + e^x)) = (w^2 + 2 w) / (w^2 + 2 w + 2) with w = e^x; beyond 20 it is 1 in double.
MB_UNARY(mish, Floats, {
  const T w = math::exp(x < T(20) ? x : T(20));
  const T rise = w * (w + T(2));
  return x != x ? x : x * (rise / (rise + T(2)));
})

MB_UNARY(hardsigmoid, Floats, {
  const T shifted = x + T(3);
  const T low = shifted < T(0) ? T(0) : shifted;
  return (low > T(6) ? T(6) : low) / T(6);
})

MB_UNARY(hardswish, Floats, {
  const T shifted = x + T(3);
  const T low = shifted < T(0) ? T(0) : shifted;
  return x * (low > T(6) ? T(6) : low) / T(6);
})

MB_UNARY(log_sigmoid, Floats, return (x > T(0) ? T(0) : x) - math::log1p(math::exp(-math::fabs(x)));)

MB_BINARY(glu, Floats, return x / (T(1) + math::exp(-y));)
MB_BINARY(prelu, Floats, return x > T(0) ? x : y * x;)

template <class T>
struct Threshold {
  T threshold, value;
  MB_DEVICE T operator()(T x, T y) const { return x <= threshold ? value : y; }
};

template <class T>
struct Elu {
  T negative, positive, negative_input;
  MB_DEVICE T operator()(T x) const { return x > T(0) ? x * positive : math::expm1(x * negative_input) * negative; }
};

template <class T>
struct Softplus {
  T beta, threshold;
  MB_DEVICE T operator()(T x) const { return x * beta > threshold ? x : math::log1p(math::exp(x * beta)) / beta; }
};

template <class T>
struct Hardshrink {
  T lambd;
  MB_DEVICE T operator()(T x) const { return x >= -lambd && x <= lambd ? T(0) : x; }
};

template <class T>
struct Softshrink {
  T lambd;
  MB_DEVICE T operator()(T x) const { return x > lambd ? x - lambd : x < -lambd ? x + lambd : x * T(0); }
};

template <class T>
struct LeakyRelu {
  T slope;
  MB_DEVICE T operator()(T x) const { return x > T(0) ? x : x * slope; }
};

// Launches F<T>{T(parameters)...} over one operand.
template <template <class> class F, class... Parameters>
void with_parameters(Stream stream, const Operands<2>& o, const char* name, Parameters... parameters) {
  visit_compute<Floats>(o, name, [&](auto type) {
    using T = typename decltype(type)::type;
    unary<T>(stream, o, F<T>{T(parameters)...});
  });
}

}  // namespace

MB_DEFINE_KERNEL(threshold, (Stream stream, const Operands<3>& o, const Number& limit, const Number& value)) {
  visit_compute<Reals>(o, "threshold", [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, Threshold<T>{limit.as<T>(), value.as<T>()});
  });
}

MB_DEFINE_KERNEL(elu, (Stream stream, const Operands<2>& o, double alpha, double scale, double input_scale)) {
  with_parameters<Elu>(stream, o, "elu", alpha * scale, scale, input_scale);
}
MB_DEFINE_KERNEL(softplus, (Stream stream, const Operands<2>& o, double beta, double threshold)) {
  with_parameters<Softplus>(stream, o, "softplus", beta, threshold);
}
MB_DEFINE_KERNEL(hardshrink, (Stream stream, const Operands<2>& o, double lambd)) {
  with_parameters<Hardshrink>(stream, o, "hardshrink", lambd);
}
MB_DEFINE_KERNEL(softshrink, (Stream stream, const Operands<2>& o, double lambd)) {
  with_parameters<Softshrink>(stream, o, "softshrink", lambd);
}
MB_DEFINE_KERNEL(leaky_relu, (Stream stream, const Operands<2>& o, double slope)) {
  with_parameters<LeakyRelu>(stream, o, "leaky_relu", slope);
}

}  // namespace mybackend::kernels
