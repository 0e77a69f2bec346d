// Layer norm and RMS norm, forward and backward.
#include <ATen/core/Tensor.h>
#include <ATen/native/layer_norm.h>

#include <limits>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/kernels/layer_norm.h"
#include "generated/layer_norm.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using c10::ScalarType;

// What the kernels need to know of the input and the weights; keeps contiguous copies alive.
struct Norm {
  c10::MaybeOwned<Tensor> input;
  Tensor weight, bias;
  int64_t rows, n;
  kernels::LayerNormArgs args;

  Norm(const Tensor& in, at::IntArrayRef normalized_shape, const std::optional<Tensor>& weight_opt,
       const std::optional<Tensor>& bias_opt, bool rms)
      : input(in.expect_contiguous()) {
    if (weight_opt && weight_opt->defined()) weight = weight_opt->contiguous();
    if (bias_opt && bias_opt->defined()) bias = bias_opt->contiguous();
    std::tie(rows, n) = at::native::_check_layer_norm_inputs(in, normalized_shape, weight, bias);
    const ScalarType type = in.scalar_type();
    const ScalarType weights = weight.defined() ? weight.scalar_type() : bias.defined() ? bias.scalar_type() : type;
    TORCH_CHECK(!(weight.defined() && bias.defined()) || weight.scalar_type() == bias.scalar_type(),
                "expected weight and bias of one dtype, got ", weight.scalar_type(), " and ", bias.scalar_type());
    TORCH_CHECK(weights == type || weights == compute_type(type), "expected scalar type ", type, " but found ",
                weights);
    args = {rows, n, rms, to_dtype(type), to_dtype(weights), input->const_data_ptr(), data(weight), data(bias)};
  }

  static const void* data(const Tensor& tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }
  device::Stream stream() const { return runtime::current_stream(input->device().index()); }
  Tensor empty(at::IntArrayRef sizes, ScalarType type) const { return empty_on_current_device(sizes, type); }

  // A tensor of one statistic a row, which broadcasts against the input.
  Tensor empty_statistic(at::IntArrayRef normalized_shape) const {
    c10::DimVector sizes(input->sizes());
    std::fill(sizes.end() - static_cast<int64_t>(normalized_shape.size()), sizes.end(), 1);
    return empty(sizes, compute_type(input->scalar_type()));
  }
};

std::tuple<Tensor, Tensor, Tensor> backward(const Norm& norm, const Tensor& grad_out, at::IntArrayRef normalized_shape,
                                            const Tensor& mean, const Tensor& rstd, bool want_input, bool want_weight,
                                            bool want_bias) {
  const auto grad = grad_out.expect_contiguous(), centre = mean.expect_contiguous(), scale = rstd.expect_contiguous();
  TORCH_CHECK(grad->scalar_type() == norm.input->scalar_type(), "expected scalar type ", norm.input->scalar_type(),
              " but found ", grad->scalar_type());
  const auto weights = static_cast<ScalarType>(norm.args.weight_dtype);
  Tensor grad_in, grad_weight, grad_bias, workspace;
  if (want_input) grad_in = norm.empty(norm.input->sizes(), norm.input->scalar_type());
  if (want_weight) grad_weight = norm.empty(normalized_shape, weights);
  if (want_bias) grad_bias = norm.empty(normalized_shape, weights);
  if (want_weight || want_bias)
    workspace = norm.empty({2 * kernels::layer_norm_pieces(norm.rows, norm.n) * norm.n},
                           compute_type(norm.input->scalar_type()));
  const auto out = [](Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; };
  kernels::layer_norm_backward(norm.stream(), norm.args, grad->const_data_ptr(), Norm::data(*centre),
                               scale->const_data_ptr(), out(grad_in), out(grad_weight), out(grad_bias), out(workspace));
  return {grad_in, grad_weight, grad_bias};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, at::IntArrayRef normalized_shape,
                                                     const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias, double eps) {
  const Norm norm(input, normalized_shape, weight, bias, false);
  Tensor out = norm.empty(input.sizes(), input.scalar_type());
  Tensor mean = norm.empty_statistic(normalized_shape), rstd = norm.empty_statistic(normalized_shape);
  kernels::layer_norm(norm.stream(), norm.args, eps, out.mutable_data_ptr(), mean.mutable_data_ptr(),
                      rstd.mutable_data_ptr());
  return {std::move(out), std::move(mean), std::move(rstd)};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                              at::IntArrayRef normalized_shape, const Tensor& mean,
                                                              const Tensor& rstd, const std::optional<Tensor>& weight,
                                                              const std::optional<Tensor>& bias,
                                                              std::array<bool, 3> output_mask) {
  const Norm norm(input, normalized_shape, weight, bias, false);
  return backward(norm, grad_out, normalized_shape, mean, rstd, output_mask[0], output_mask[1] && norm.weight.defined(),
                  output_mask[2] && norm.bias.defined());
}

std::tuple<Tensor, Tensor> _fused_rms_norm(const Tensor& input, at::IntArrayRef normalized_shape,
                                           const std::optional<Tensor>& weight, std::optional<double> eps) {
  const Norm norm(input, normalized_shape, weight, std::nullopt, true);
  const bool is_double = compute_type(input.scalar_type()) == c10::kDouble;
  const double smallest = is_double ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  Tensor out = norm.empty(input.sizes(), input.scalar_type());
  Tensor rstd = norm.empty_statistic(normalized_shape);
  kernels::layer_norm(norm.stream(), norm.args, eps.value_or(smallest), out.mutable_data_ptr(), nullptr,
                      rstd.mutable_data_ptr());
  return {std::move(out), std::move(rstd)};
}

std::tuple<Tensor, Tensor> _fused_rms_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                    at::IntArrayRef normalized_shape, const Tensor& rstd,
                                                    const std::optional<Tensor>& weight,
                                                    std::array<bool, 2> output_mask) {
  const Norm norm(input, normalized_shape, weight, std::nullopt, true);
  auto [grad_in, grad_weight, grad_bias] = backward(norm, grad_out, normalized_shape, rstd, rstd, output_mask[0],
                                                    output_mask[1] && norm.weight.defined(), false);
  return {std::move(grad_in), std::move(grad_weight)};
}

}  // namespace mybackend::aten
