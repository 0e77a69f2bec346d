// Batch norm: all functional forms, their out= forms and gradients, and the pieces SyncBatchNorm is made of.
//
// Statistics are of the compute type (float for half and bfloat16), as on CUDA; weights and running statistics may have
// another dtype than the input. Memory formats: planes (contiguous) and channels last are used as they lie, anything
// else is made contiguous first; the result has the layout that was used.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>

#include "csrc/aten/channel_norm.h"
#include "generated/batch_norm.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using kernels::ChannelArray;
using OptionalTensor = std::optional<Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

// The input as kernels see it; keeps a contiguous copy alive.
struct Channels {
  Tensor data;
  at::MemoryFormat format = at::MemoryFormat::Contiguous;
  kernels::ChannelLayout layout;
  at::ScalarType statistics;

  explicit Channels(const Tensor& input) {
    TORCH_CHECK(input.dim() >= 2, "Expected more than 1D input, but got a ", input.dim(), "D tensor");
    const int64_t n = input.size(0), c = input.size(1);
    const int64_t s = c10::multiply_integers(input.sizes().slice(2));
    data = input;
    if (!input.is_contiguous()) {
      for (const auto candidate : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::ChannelsLast3d})
        if (input.is_contiguous(candidate)) format = candidate;
      data = input.contiguous(format);
    }
    layout = {n, c, s, s == 1 || format != at::MemoryFormat::Contiguous};
    statistics = compute_type(input.scalar_type());
  }

  DType dtype() const { return to_dtype(data.scalar_type()); }
  DType compute() const { return to_dtype(statistics); }
  int64_t groups() const { return kernels::channel_groups(layout); }
  device::Stream stream() const { return runtime::current_stream(data.device().index()); }
  Tensor statistic() const { return empty_on_current_device({layout.c}, statistics); }
  Tensor alike(const Tensor& tensor) const { return tensor.contiguous(format); }
};

Tensor defined(const OptionalTensor& tensor) {
  return tensor.has_value() && tensor->defined() ? tensor->contiguous() : Tensor();
}

void check_length(const Tensor& tensor, int64_t channels, const char* name) {
  TORCH_CHECK(!tensor.defined() || tensor.numel() == channels, name, " should contain ", channels, " elements not ",
              tensor.numel());
}

// Running statistics that are updated in place: contiguous ones as they are, others through a copy.
class Running {
 public:
  explicit Running(const OptionalTensor& tensor) {
    if (tensor.has_value() && tensor->defined()) {
      owner_ = *tensor;
      held_ = owner_.contiguous();
    }
  }
  const Tensor& tensor() const { return held_; }
  void finish() {
    if (owner_.defined() && !owner_.is_same(held_)) owner_.copy_(held_);
  }

 private:
  Tensor owner_, held_;
};

void statistics(const Channels& in, double eps, double momentum, Tensor& mean, Tensor* variance, Tensor* invstd,
                const OptionalTensor& running_mean, const OptionalTensor& running_var) {
  Running average(running_mean), spread(running_var);
  check_length(average.tensor(), in.layout.c, "running_mean");
  check_length(spread.tensor(), in.layout.c, "running_var");
  const int64_t groups = in.groups();
  Workspace workspace(in.statistics, 2 * groups * in.layout.c);
  void* group_mean = workspace.take(groups * in.layout.c);
  void* group_squares = workspace.take(groups * in.layout.c);
  kernels::channel_moments(in.stream(), in.layout, in.dtype(), in.data.const_data_ptr(), group_mean, group_squares);
  kernels::batch_norm_statistics(
      in.stream(), {in.compute(), in.layout.c, groups, eps, momentum, in.layout}, group_mean, group_squares,
      mean.mutable_data_ptr(), variance ? variance->mutable_data_ptr() : nullptr,
      invstd ? invstd->mutable_data_ptr() : nullptr, channel_array(average.tensor()), channel_array(spread.tensor()));
  average.finish();
  spread.finish();
}

Tensor normalize(const Channels& in, const OptionalTensor& weight_opt, const OptionalTensor& bias_opt,
                 const Tensor& mean, const Tensor& invstd) {
  const Tensor weight = defined(weight_opt), bias = defined(bias_opt);
  check_length(weight, in.layout.c, "weight");
  check_length(bias, in.layout.c, "bias");
  Workspace workspace(in.statistics, 2 * in.layout.c);
  void* scale = workspace.take(in.layout.c);
  void* shift = workspace.take(in.layout.c);
  kernels::batch_norm_coefficients(in.stream(), in.compute(), in.layout.c, invstd.const_data_ptr(),
                                   channel_array(weight), channel_array(bias), scale, shift);
  Tensor out = at::empty_like(in.data);
  kernels::channel_normalize(in.stream(), in.layout, in.dtype(), in.data.const_data_ptr(), mean.const_data_ptr(), scale,
                             shift, out.mutable_data_ptr());
  return out;
}

Tensor inverse_deviation(const Tensor& variance, at::ScalarType type, double eps) {
  return variance.to(type).add(eps).rsqrt_();
}

Triple forward(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
               const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training, double momentum,
               double eps) {
  const bool has_mean = running_mean && running_mean->defined(), has_var = running_var && running_var->defined();
  TORCH_CHECK(has_mean == has_var, "running_mean and running_var must either both be None or neither be None");
  const Channels in(input);
  Tensor mean, invstd;
  if (training) {
    mean = in.statistic();
    invstd = in.statistic();
    statistics(in, eps, momentum, mean, nullptr, &invstd, running_mean, running_var);
  } else {
    TORCH_CHECK(has_mean, "running_mean must be defined in evaluation mode");
    check_length(*running_mean, in.layout.c, "running_mean");
    check_length(*running_var, in.layout.c, "running_var");
    mean = running_mean->to(in.statistics, false, true).contiguous();
    invstd = inverse_deviation(*running_var, in.statistics, eps);
  }
  Tensor out = normalize(in, weight, bias, mean, invstd);
  return {std::move(out), std::move(mean), std::move(invstd)};
}

Triple backward(const Tensor& grad_out, const Tensor& input, const OptionalTensor& weight_opt,
                const OptionalTensor& running_mean, const OptionalTensor& running_var, const OptionalTensor& save_mean,
                const OptionalTensor& save_invstd, bool training, double eps, std::array<bool, 3> output_mask) {
  const Channels in(input);
  const Tensor grad = in.alike(grad_out), weight = defined(weight_opt);
  TORCH_CHECK(grad.scalar_type() == in.data.scalar_type(), "expected scalar type ", in.data.scalar_type(),
              " but found ", grad.scalar_type());
  Tensor mean, invstd;
  if (training) {
    TORCH_CHECK(save_mean && save_mean->defined() && save_invstd && save_invstd->defined(),
                "save_mean and save_invstd must be defined in training mode");
    mean = save_mean->to(in.statistics).contiguous();
    invstd = save_invstd->to(in.statistics).contiguous();
  } else {
    TORCH_CHECK(running_mean && running_mean->defined() && running_var && running_var->defined(),
                "running_mean and running_var must be defined in evaluation mode");
    mean = running_mean->to(in.statistics).contiguous();
    invstd = inverse_deviation(*running_var, in.statistics, eps);
  }
  const int64_t c = in.layout.c, groups = in.groups();
  Workspace workspace(in.statistics, (2 * groups + 3) * c);
  void* sum = workspace.take(groups * c);
  void* product = workspace.take(groups * c);
  void* a = workspace.take(c);
  void* b = workspace.take(c);
  void* shift = workspace.take(c);
  const at::ScalarType weights = weight.defined() ? weight.scalar_type() : in.data.scalar_type();
  Tensor grad_in, grad_weight, grad_bias;
  if (output_mask[1]) grad_weight = empty_on_current_device({c}, weights);
  if (output_mask[2]) grad_bias = empty_on_current_device({c}, weights);
  kernels::channel_gradient_sums(in.stream(), in.layout, in.dtype(), grad.const_data_ptr(), in.data.const_data_ptr(),
                                 mean.const_data_ptr(), sum, product);
  kernels::batch_norm_gradients(in.stream(), in.compute(), c, groups, double(in.layout.n * in.layout.s), training, sum,
                                product, invstd.const_data_ptr(), channel_array(weight), channel_array(grad_weight),
                                channel_array(grad_bias), a, b, shift);
  if (output_mask[0]) {
    grad_in = at::empty_like(in.data);
    kernels::channel_normalize_backward(in.stream(), in.layout, in.dtype(), grad.const_data_ptr(),
                                        in.data.const_data_ptr(), mean.const_data_ptr(), a, b, shift,
                                        grad_in.mutable_data_ptr());
  }
  return {std::move(grad_in), std::move(grad_weight), std::move(grad_bias)};
}

Tensor& give(Tensor& out, const Tensor& result) {
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

std::tuple<Tensor&, Tensor&, Tensor&> give(Tensor& out, Tensor& mean, Tensor& invstd, const Triple& result) {
  return {give(out, std::get<0>(result)), give(mean, std::get<1>(result)), give(invstd, std::get<2>(result))};
}

}  // namespace

Triple native_batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                         const OptionalTensor& running_mean, const OptionalTensor& running_var, bool training,
                         double momentum, double eps) {
  return forward(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> native_batch_norm_out(const Tensor& input, const OptionalTensor& weight,
                                                            const OptionalTensor& bias,
                                                            const OptionalTensor& running_mean,
                                                            const OptionalTensor& running_var, bool training,
                                                            double momentum, double eps, Tensor& out, Tensor& save_mean,
                                                            Tensor& save_invstd) {
  return give(out, save_mean, save_invstd,
              forward(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Triple _native_batch_norm_legit(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                Tensor& running_mean, Tensor& running_var, bool training, double momentum, double eps) {
  return forward(input, weight, bias, running_mean, running_var, training, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> _native_batch_norm_legit_out(const Tensor& input, const OptionalTensor& weight,
                                                                   const OptionalTensor& bias, Tensor& running_mean,
                                                                   Tensor& running_var, bool training, double momentum,
                                                                   double eps, Tensor& out, Tensor& save_mean,
                                                                   Tensor& save_invstd) {
  return give(out, save_mean, save_invstd,
              forward(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

Triple _native_batch_norm_legit_no_stats(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                                         bool training, double momentum, double eps) {
  return forward(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

std::tuple<Tensor&, Tensor&, Tensor&> _native_batch_norm_legit_no_stats_out(const Tensor& input,
                                                                            const OptionalTensor& weight,
                                                                            const OptionalTensor& bias, bool training,
                                                                            double momentum, double eps, Tensor& out,
                                                                            Tensor& save_mean, Tensor& save_invstd) {
  return give(out, save_mean, save_invstd,
              forward(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps));
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _batch_norm_with_update(const Tensor& input, const OptionalTensor& weight,
                                                                   const OptionalTensor& bias, Tensor& running_mean,
                                                                   Tensor& running_var, double momentum, double eps) {
  auto [out, mean, invstd] = forward(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {std::move(out), std::move(mean), std::move(invstd), empty_on_current_device({0}, at::kByte)};
}

std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> _batch_norm_with_update_out(
    const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias, Tensor& running_mean,
    Tensor& running_var, double momentum, double eps, Tensor& out, Tensor& save_mean, Tensor& save_invstd,
    Tensor& reserve) {
  give(out, save_mean, save_invstd, forward(input, weight, bias, running_mean, running_var, true, momentum, eps));
  return {out, save_mean, save_invstd, reserve};
}

Triple native_batch_norm_backward(const Tensor& grad_out, const Tensor& input, const OptionalTensor& weight,
                                  const OptionalTensor& running_mean, const OptionalTensor& running_var,
                                  const OptionalTensor& save_mean, const OptionalTensor& save_invstd, bool train,
                                  double eps, std::array<bool, 3> output_mask) {
  return backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask);
}

Triple batch_norm_backward(const Tensor& grad_out, const Tensor& input, const Tensor& weight,
                           const OptionalTensor& running_mean, const OptionalTensor& running_var,
                           const OptionalTensor& save_mean, const OptionalTensor& save_var, bool update, double eps,
                           std::array<bool, 3> output_mask, const Tensor& /*reserve*/) {
  return backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask);
}

std::tuple<Tensor, Tensor> batch_norm_update_stats(const Tensor& input, const OptionalTensor& running_mean,
                                                   const OptionalTensor& running_var, double momentum) {
  const Channels in(input);
  Tensor mean = in.statistic(), variance = in.statistic();
  statistics(in, 0, momentum, mean, &variance, nullptr, running_mean, running_var);
  return {std::move(mean), std::move(variance)};
}

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  const Channels in(input);
  Tensor mean = in.statistic(), invstd = in.statistic();
  statistics(in, eps, 0, mean, nullptr, &invstd, std::nullopt, std::nullopt);
  return {std::move(mean), std::move(invstd)};
}

Tensor batch_norm_elemt(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                        const Tensor& mean, const Tensor& invstd, double /*eps*/) {
  const Channels in(input);
  return normalize(in, weight, bias, mean.to(in.statistics).contiguous(), invstd.to(in.statistics).contiguous());
}

Tensor& batch_norm_elemt_out(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                             const Tensor& mean, const Tensor& invstd, double eps, Tensor& out) {
  return give(out, aten::batch_norm_elemt(input, weight, bias, mean, invstd, eps));
}

// mean and invstd are (replicas, channels); the moments of the replicas are combined by their counts.
std::tuple<Tensor, Tensor> batch_norm_gather_stats_with_counts(const Tensor& input, const Tensor& mean,
                                                               const Tensor& invstd, const OptionalTensor& running_mean,
                                                               const OptionalTensor& running_var, double momentum,
                                                               double eps, const Tensor& counts) {
  const at::ScalarType type = compute_type(input.scalar_type());
  const Tensor n = counts.to(type).view({-1, 1}), total = n.sum();
  const Tensor means = mean.to(type), variances = invstd.to(type).pow(-2).sub_(eps);
  const Tensor overall = means.mul(n).sum(0).div_(total);
  const Tensor squares = variances.add(means.sub(overall).square_()).mul_(n).sum(0);
  if (running_mean && running_mean->defined())
    running_mean->mul_(1 - momentum).add_(overall.to(running_mean->scalar_type()), momentum);
  if (running_var && running_var->defined())
    running_var->mul_(1 - momentum).add_(squares.div(total.sub(1)).to(running_var->scalar_type()), momentum);
  return {overall, squares.div(total).add_(eps).rsqrt_()};
}

// The same with one count for all replicas.
std::tuple<Tensor, Tensor> batch_norm_gather_stats(const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                                   const OptionalTensor& running_mean,
                                                   const OptionalTensor& running_var, double momentum, double eps,
                                                   int64_t count) {
  const Tensor counts = at::full({mean.size(0)}, count, mean.options().dtype(compute_type(input.scalar_type())));
  return aten::batch_norm_gather_stats_with_counts(input, mean, invstd, running_mean, running_var, momentum, eps,
                                                   counts);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_backward_reduce(const Tensor& grad_out, const Tensor& input,
                                                                      const Tensor& mean, const Tensor& invstd,
                                                                      const OptionalTensor& weight_opt, bool input_g,
                                                                      bool weight_g, bool bias_g) {
  const Channels in(input);
  const Tensor grad = in.alike(grad_out), weight = defined(weight_opt);
  const Tensor centre = mean.to(in.statistics).contiguous();
  const int64_t c = in.layout.c, groups = in.groups();
  const Tensor sums = empty_on_current_device({groups, c}, in.statistics);
  const Tensor products = empty_on_current_device({groups, c}, in.statistics);
  kernels::channel_gradient_sums(in.stream(), in.layout, in.dtype(), grad.const_data_ptr(), in.data.const_data_ptr(),
                                 centre.const_data_ptr(), sums.mutable_data_ptr(), products.mutable_data_ptr());
  const Tensor sum = sums.sum(0), product = products.sum(0);
  const at::ScalarType weights = weight.defined() ? weight.scalar_type() : in.statistics;
  Tensor grad_weight, grad_bias;
  if (weight_g) grad_weight = product.mul(invstd).to(weights);
  if (bias_g) grad_bias = sum.to(weights, false, true);
  return {input_g ? sum : Tensor(), input_g ? product : Tensor(), grad_weight, grad_bias};
}

Tensor batch_norm_backward_elemt(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& invstd,
                                 const OptionalTensor& weight, const Tensor& sum_dy, const Tensor& sum_dy_xmu,
                                 const Tensor& count) {
  const Channels in(input);
  const Tensor grad = in.alike(grad_out);
  const Tensor centre = mean.to(in.statistics).contiguous(), inverse = invstd.to(in.statistics);
  const Tensor total = count.sum().to(in.statistics);
  const Tensor a = (weight && weight->defined() ? inverse.mul(weight->to(in.statistics)) : inverse).contiguous();
  const Tensor b = a.mul(inverse.square()).mul_(sum_dy_xmu).div_(total).neg_();
  const Tensor c = a.mul(sum_dy).div_(total).neg_();
  Tensor grad_in = at::empty_like(in.data);
  kernels::channel_normalize_backward(in.stream(), in.layout, in.dtype(), grad.const_data_ptr(),
                                      in.data.const_data_ptr(), centre.const_data_ptr(), a.const_data_ptr(),
                                      b.const_data_ptr(), c.const_data_ptr(), grad_in.mutable_data_ptr());
  return grad_in;
}

}  // namespace mybackend::aten
