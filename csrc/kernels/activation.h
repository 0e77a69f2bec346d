// Entry points of csrc/kernels/{activation,activation_backward,gelu}.cu. Backwards take the gradient where upstream's
// iterators have it; parameters are upstream's, as double.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// x <= threshold ? value : y.
MB_DECLARE_KERNEL(threshold,
                  void(Stream stream, const Operands<3>& operands, const Number& threshold, const Number& value));

#define MB_ACTIVATION_1(M) M(silu) M(mish) M(hardsigmoid) M(hardswish) M(log_sigmoid)
#define MB_DECLARE_ACTIVATION(name) MB_DECLARE_KERNEL(name, void(Stream stream, const Operands<2>& operands));
MB_ACTIVATION_1(MB_DECLARE_ACTIVATION)
#undef MB_DECLARE_ACTIVATION

#define MB_ACTIVATION_2(M) \
  M(glu)                   \
  M(prelu)                 \
  M(silu_backward)         \
  M(mish_backward) M(hardsigmoid_backward) M(hardswish_backward) M(log_sigmoid_backward) M(prelu_backward_weight)
#define MB_DECLARE_ACTIVATION(name) MB_DECLARE_KERNEL(name, void(Stream stream, const Operands<3>& operands));
MB_ACTIVATION_2(MB_DECLARE_ACTIVATION)
#undef MB_DECLARE_ACTIVATION

// operands (gated, gate, grad)
MB_DECLARE_KERNEL(glu_backward_gated, void(Stream stream, const Operands<3>& operands));   // gate, grad
MB_DECLARE_KERNEL(glu_backward_gate, void(Stream stream, const Operands<4>& operands));    // gated, gate, grad
MB_DECLARE_KERNEL(glu_jvp, void(Stream stream, const Operands<5>& operands));              // glu, gate, d gated, d gate
MB_DECLARE_KERNEL(prelu_backward_self, void(Stream stream, const Operands<4>& operands));  // self, weight, grad

MB_DECLARE_KERNEL(elu,
                  void(Stream stream, const Operands<2>& operands, double alpha, double scale, double input_scale));
MB_DECLARE_KERNEL(elu_backward, void(Stream stream, const Operands<3>& operands, double alpha, double scale,
                                     double input_scale, bool is_result));
MB_DECLARE_KERNEL(softplus, void(Stream stream, const Operands<2>& operands, double beta, double threshold));
MB_DECLARE_KERNEL(softplus_backward, void(Stream stream, const Operands<3>& operands, double beta, double threshold));
MB_DECLARE_KERNEL(hardshrink, void(Stream stream, const Operands<2>& operands, double lambd));
MB_DECLARE_KERNEL(softshrink, void(Stream stream, const Operands<2>& operands, double lambd));
MB_DECLARE_KERNEL(shrink_backward, void(Stream stream, const Operands<3>& operands, double lambd));
MB_DECLARE_KERNEL(hardtanh_backward, void(Stream stream, const Operands<3>& operands, double low, double high));
MB_DECLARE_KERNEL(leaky_relu, void(Stream stream, const Operands<2>& operands, double slope));
MB_DECLARE_KERNEL(leaky_relu_backward, void(Stream stream, const Operands<3>& operands, double slope));

MB_DECLARE_KERNEL(gelu, void(Stream stream, const Operands<2>& operands, bool tanh));
MB_DECLARE_KERNEL(gelu_backward, void(Stream stream, const Operands<3>& operands, bool tanh));

}  // namespace mybackend::kernels
