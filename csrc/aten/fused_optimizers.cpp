// Fused optimizers: argument checks and one launch a call.
#include <ATen/native/ForeachUtils.h>

#include "csrc/aten/foreach.h"
#include "csrc/kernels/fused_optimizers.h"
#include "generated/fused_optimizers.h"

namespace mybackend::aten {

using at::Tensor;
using at::TensorList;
using kernels::FusedStep;
using lists::Lists;
using OptionalTensor = std::optional<Tensor>;

namespace {

// One float on the device, or null.
const float* number_on_device(const OptionalTensor& tensor, const Tensor& param) {
  if (!tensor.has_value() || !tensor->defined()) return nullptr;
  TORCH_CHECK(tensor->device() == param.device(),
              "Expected all tensors to be on the same device, but found at least two devices, ", param.device(),
              " and ", tensor->device(), "!");
  return tensor->const_data_ptr<float>();
}

FusedStep step_of(TensorList params, double lr, double weight_decay, bool maximize, const OptionalTensor& grad_scale,
                  const OptionalTensor& found_inf) {
  return {lr,
          nullptr,
          weight_decay,
          maximize,
          number_on_device(grad_scale, params[0]),
          number_on_device(found_inf, params[0])};
}

// A learning rate on the device is read there, so that it need not be waited for. `held` keeps a converted one alive.
FusedStep with_rate(FusedStep step, TensorList params, const Tensor& lr, Tensor& held) {
  if (lr.is_cpu()) {
    step.lr = lr.item<double>();
  } else {
    held = lr.to(c10::kFloat);
    step.lr_tensor = number_on_device(held, params[0]);
  }
  return step;
}

// Pointers to the step counters; a tensor without elements has one as well.
c10::SmallVector<void*, 64> counters(TensorList steps, TensorList params) {
  TORCH_CHECK(steps.size() == params.size(), "Tensor lists must have the same number of tensors, got ", params.size(),
              " and ", steps.size());
  c10::SmallVector<void*, 64> out;
  out.reserve(steps.size());
  for (const Tensor& step : steps) {
    TORCH_CHECK(step.scalar_type() == c10::kFloat && step.device() == params[0].device() && step.numel() == 1,
                "`state_steps` must be single-element float tensors on ", params[0].device());
    out.push_back(const_cast<void*>(step.const_data_ptr()));
  }
  return out;
}

void check_alike(at::ArrayRef<TensorList> lists, const char* message) {
  for (const TensorList& list : lists)
    TORCH_CHECK(list.size() == lists[0].size(), "Tensor lists must have the same number of tensors, got ",
                lists[0].size(), " and ", list.size());
  TORCH_CHECK(at::native::check_fast_path_restrictions(lists), message);
}

void adam(TensorList params, TensorList grads, TensorList averages, TensorList squares, TensorList maxima,
          TensorList steps, const FusedStep& step, const kernels::Adam& adam) {
  const auto stream = lists::stream_of(params);
  const auto counts = counters(steps, params);
  if (adam.amsgrad) {
    check_alike({params, grads, averages, squares, maxima},
                "params, grads, exp_avgs, exp_avg_sqs, and max_exp_avg_sqs must have same dtype, device, and layout");
    return kernels::fused_adam(stream, Lists({params, grads, averages, squares, maxima}, 5), counts.data(), step, adam);
  }
  check_alike({params, grads, averages, squares},
              "params, grads, exp_avgs, and exp_avg_sqs must have same dtype, device, and layout");
  kernels::fused_adam(stream, Lists({params, grads, averages, squares}, 4), counts.data(), step, adam);
}

void sgd(TensorList params, TensorList grads, TensorList buffers, const FusedStep& step, const kernels::Sgd& sgd) {
  const auto stream = lists::stream_of(params);
  constexpr const char* message = "params, grads and momentum buffers must have same dtype, device, and layout";
  if (sgd.momentum != 0) {
    check_alike({params, grads, buffers}, message);
    return kernels::fused_sgd(stream, Lists({params, grads, buffers}, 3), step, sgd);
  }
  TORCH_CHECK(buffers.empty(), "Momentum buffers are not expected without momentum");
  check_alike({params, grads}, message);
  kernels::fused_sgd(stream, Lists({params, grads}, 2), step, sgd);
}

void adagrad(TensorList params, TensorList grads, TensorList sums, TensorList steps, const FusedStep& step,
             const kernels::Adagrad& adagrad) {
  check_alike({params, grads, sums}, "params, grads, and state_sums must have same dtype, device, and layout");
  const auto counts = counters(steps, params);
  kernels::fused_adagrad(lists::stream_of(params), Lists({params, grads, sums}, 3), counts.data(), step, adagrad);
}

}  // namespace

#define MB_FUSED_ADAM(name, decoupled)                                                                               \
  void name(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,                          \
            TensorList max_exp_avg_sqs, TensorList state_steps, double lr, double beta1, double beta2,               \
            double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor& grad_scale,          \
            const OptionalTensor& found_inf) {                                                                       \
    adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,                                           \
         step_of(self, lr, weight_decay, maximize, grad_scale, found_inf), {beta1, beta2, eps, amsgrad, decoupled}); \
  }                                                                                                                  \
  void name##_tensor_lr(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,              \
                        TensorList max_exp_avg_sqs, TensorList state_steps, const Tensor& lr, double beta1,          \
                        double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,                  \
                        const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {                         \
    Tensor held;                                                                                                     \
    adam(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps,                                           \
         with_rate(step_of(self, 0, weight_decay, maximize, grad_scale, found_inf), self, lr, held),                 \
         {beta1, beta2, eps, amsgrad, decoupled});                                                                   \
  }
MB_FUSED_ADAM(_fused_adam_, false)
MB_FUSED_ADAM(_fused_adamw_, true)
#undef MB_FUSED_ADAM

void _fused_sgd_(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay,
                 double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                 const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  sgd(self, grads, momentum_buffer_list, step_of(self, lr, weight_decay, maximize, grad_scale, found_inf),
      {momentum, dampening, nesterov, is_first_step});
}

void _fused_sgd__tensor_lr(TensorList self, TensorList grads, TensorList momentum_buffer_list, double weight_decay,
                           double momentum, const Tensor& lr, double dampening, bool nesterov, bool maximize,
                           bool is_first_step, const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  Tensor held;
  sgd(self, grads, momentum_buffer_list,
      with_rate(step_of(self, 0, weight_decay, maximize, grad_scale, found_inf), self, lr, held),
      {momentum, dampening, nesterov, is_first_step});
}

void _fused_adagrad_(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps, double lr,
                     double lr_decay, double weight_decay, double eps, bool maximize, const OptionalTensor& grad_scale,
                     const OptionalTensor& found_inf) {
  adagrad(self, grads, state_sums, state_steps, step_of(self, lr, weight_decay, maximize, grad_scale, found_inf),
          {lr_decay, eps});
}

void _fused_adagrad__tensor_lr(TensorList self, TensorList grads, TensorList state_sums, TensorList state_steps,
                               const Tensor& lr, double lr_decay, double weight_decay, double eps, bool maximize,
                               const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
  Tensor held;
  adagrad(self, grads, state_sums, state_steps,
          with_rate(step_of(self, 0, weight_decay, maximize, grad_scale, found_inf), self, lr, held), {lr_decay, eps});
}

}  // namespace mybackend::aten
