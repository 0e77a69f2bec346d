// Activation functions and their gradients: our kernels behind upstream's stubs; gelu, glu_backward and log_sigmoid,
// whose implementations upstream does not share between devices, here.
#include <ATen/native/Activation.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "csrc/aten/pointwise.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/activation.h"
#include "generated/activation.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorIteratorBase;
using c10::Scalar;

void threshold(TensorIteratorBase& iter, const Scalar& limit, const Scalar& value) {
  const Operands<3> o = operands_of<3>(iter);
  kernels::threshold(stream_of(iter), o, number_of(limit, o.compute), number_of(value, o.compute));
}

void elu_backward(TensorIteratorBase& iter, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale,
                  bool is_result) {
  kernels::elu_backward(stream_of(iter), operands_of<3>(iter), alpha.toDouble(), scale.toDouble(),
                        input_scale.toDouble(), is_result);
}

void prelu_backward(at::TensorIterator& iter) {
  const Operands<5> o = operands_of<5>(iter);  // grad_self, grad_weight, self, weight, grad
  kernels::prelu_backward_self(stream_of(iter), pick<4>(o, {0, 2, 3, 4}));
  kernels::prelu_backward_weight(stream_of(iter), pick<3>(o, {1, 2, 4}));
}

}  // namespace

MB_IMPL_FUNC(gelu_out)(const Tensor&, c10::string_view approximate, const Tensor&) {
  kernels::gelu(stream_of(*this), operands_of<2>(*this),
                at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh);
}

MB_IMPL_FUNC(gelu_backward_grad_input)(const Tensor&, const Tensor&, c10::string_view approximate, const Tensor&) {
  kernels::gelu_backward(stream_of(*this), operands_of<3>(*this),
                         at::native::get_gelutype_enum(approximate) == at::native::GeluType::Tanh);
}

Tensor& glu_backward_grad_input(const Tensor& grad_output, const Tensor& self, int64_t dim, Tensor& grad_input) {
  TORCH_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
  const int64_t wrapped = c10::maybe_wrap_dim(dim, self.dim());
  const int64_t size = self.size(wrapped);
  TORCH_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", wrapped, " is size ", size);
  at::native::resize_output(grad_input, self.sizes());
  if (grad_input.numel() == 0) return grad_input;
  const Tensor gated = self.narrow(wrapped, 0, size / 2), gate = self.narrow(wrapped, size / 2, size / 2);
  const auto iterate = [&](int64_t start, auto&&... inputs) {
    const Tensor half = grad_input.narrow(wrapped, start, size / 2);
    at::TensorIteratorConfig config;
    config.add_output(half).resize_outputs(false);
    (config.add_const_input(inputs), ...);
    return config.build();
  };
  auto of_gated = iterate(0, gate, grad_output);
  auto of_gate = iterate(size / 2, gated, gate, grad_output);
  run_pointwise<3, kernels::glu_backward_gated>(of_gated);
  run_pointwise<4, kernels::glu_backward_gate>(of_gate);
  return grad_input;
}

Tensor glu_backward(const Tensor& grad_output, const Tensor& self, int64_t dim) {
  Tensor grad_input = at::empty_like(self);
  glu_backward_grad_input(grad_output, self, dim, grad_input);
  return grad_input;
}

// `buffer` is how the CPU kernel hands e^-|x| to its backward; nothing is kept here, as on CUDA.
std::tuple<Tensor&, Tensor&> log_sigmoid_forward_output(const Tensor& self, Tensor& output, Tensor& buffer) {
  auto iter = at::TensorIteratorConfig().add_output(output).add_const_input(self).build();
  run_pointwise<2, kernels::log_sigmoid>(iter);
  return {output, buffer};
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  Tensor output = at::empty_like(self);
  Tensor buffer = at::empty({0}, self.options());
  log_sigmoid_forward_output(self, output, buffer);
  return {output, buffer};
}

Tensor& log_sigmoid_backward_grad_input(const Tensor& grad_output, const Tensor& self, const Tensor& /*buffer*/,
                                        Tensor& grad_input) {
  auto iter =
      at::TensorIteratorConfig().add_output(grad_input).add_const_input(self).add_const_input(grad_output).build();
  run_pointwise<3, kernels::log_sigmoid_backward>(iter);
  return grad_input;
}

Tensor log_sigmoid_backward(const Tensor& grad_output, const Tensor& self, const Tensor& buffer) {
  Tensor grad_input = at::empty_like(grad_output);
  log_sigmoid_backward_grad_input(grad_output, self, buffer, grad_input);
  return grad_input;
}

}  // namespace mybackend::aten

namespace at::native {
namespace aten = mybackend::aten;
namespace kernels = mybackend::kernels;

REGISTER_PRIVATEUSE1_DISPATCH(threshold_stub, &aten::threshold)
REGISTER_PRIVATEUSE1_DISPATCH(silu_stub, (&aten::run_pointwise<2, kernels::silu>))
REGISTER_PRIVATEUSE1_DISPATCH(silu_backward_stub, (&aten::run_pointwise<3, kernels::silu_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(mish_stub, (&aten::run_pointwise<2, kernels::mish>))
REGISTER_PRIVATEUSE1_DISPATCH(mish_backward_stub, (&aten::run_pointwise<3, kernels::mish_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(hardsigmoid_stub, (&aten::run_pointwise<2, kernels::hardsigmoid>))
REGISTER_PRIVATEUSE1_DISPATCH(hardsigmoid_backward_stub, (&aten::run_pointwise<3, kernels::hardsigmoid_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(hardswish_stub, (&aten::run_pointwise<2, kernels::hardswish>))
REGISTER_PRIVATEUSE1_DISPATCH(hardswish_backward_stub, (&aten::run_pointwise<3, kernels::hardswish_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(glu_stub, (&aten::run_pointwise<3, kernels::glu>))
REGISTER_PRIVATEUSE1_DISPATCH(glu_jvp_stub, (&aten::run_pointwise<5, kernels::glu_jvp>))
REGISTER_PRIVATEUSE1_DISPATCH(prelu_stub, (&aten::run_pointwise<3, kernels::prelu>))
REGISTER_PRIVATEUSE1_DISPATCH(prelu_backward_stub, &aten::prelu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(elu_stub, (&aten::run_with_doubles<2, kernels::elu>))
REGISTER_PRIVATEUSE1_DISPATCH(elu_backward_stub, &aten::elu_backward)
REGISTER_PRIVATEUSE1_DISPATCH(softplus_stub, (&aten::run_with_doubles<2, kernels::softplus>))
REGISTER_PRIVATEUSE1_DISPATCH(softplus_backward_stub, (&aten::run_with_doubles<3, kernels::softplus_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(hardshrink_stub, (&aten::run_with_doubles<2, kernels::hardshrink>))
REGISTER_PRIVATEUSE1_DISPATCH(softshrink_stub, (&aten::run_with_doubles<2, kernels::softshrink>))
REGISTER_PRIVATEUSE1_DISPATCH(shrink_backward_stub, (&aten::run_with_doubles<3, kernels::shrink_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(hardtanh_backward_stub, (&aten::run_with_doubles<3, kernels::hardtanh_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_stub, (&aten::run_with_doubles<2, kernels::leaky_relu>))
REGISTER_PRIVATEUSE1_DISPATCH(leaky_relu_backward_stub, (&aten::run_with_doubles<3, kernels::leaky_relu_backward>))
}  // namespace at::native
