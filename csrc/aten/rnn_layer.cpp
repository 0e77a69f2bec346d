// Upstream's loop for devices other than the CPU multiplies the input of each step and accumulates the gradient of each
// weight once per step. Here the input's products are one multiplication before the loop, and the gradients of the
// weights one after it; only the recurrent product and the pointwise kernel (csrc/kernels/rnn.h) remain inside.
//
// A second derivative is rare: it is computed by upstream's loop, which is differentiable step by step.
#include "csrc/aten/rnn_layer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/rnn.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.get_device());
}
const void* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

// The i-th of `steps` steps in the order in which they are taken.
struct Steps {
  int64_t steps;
  bool reverse;
  int64_t operator[](int64_t i) const { return reverse ? steps - 1 - i : i; }
};

char* at_step(const Tensor& sequence, int64_t step) {
  return static_cast<char*>(sequence.mutable_data_ptr()) + step * sequence.stride(0) * sequence.itemsize();
}

Tensor flat(const Tensor& sequence) {
  return sequence.flatten(0, 1);
}

// Gradient of the recurrent weight: the gates' gradients of each step with the state before it.
Tensor recurrent_gradient(const Tensor& grad_gates, const Tensor& hx, const Tensor& outputs, bool reverse) {
  const int64_t steps = outputs.size(0);
  Tensor grad = at::mm(grad_gates[reverse ? steps - 1 : 0].t(), hx);
  if (steps > 1) {
    const Tensor gates = grad_gates.narrow(0, reverse ? 0 : 1, steps - 1);
    const Tensor before = outputs.narrow(0, reverse ? 1 : 0, steps - 1);
    grad.addmm_(flat(gates).t(), flat(before));
  }
  return grad;
}

// What the differentiable loop is given: leaves of their own, so that only the gradients asked for are computed.
struct Replay {
  variable_list leaves;
  explicit Replay(const variable_list& inputs) : leaves(inputs) {}
  variable_list gradients(const variable_list& outputs, const variable_list& grads) const {
    variable_list defined, its_grads, wanted;
    for (size_t i = 0; i < outputs.size(); i++) {
      if (!grads[i].defined()) continue;
      defined.push_back(outputs[i]);
      its_grads.push_back(grads[i]);
    }
    for (const Tensor& leaf : leaves)
      if (leaf.defined() && leaf.requires_grad()) wanted.push_back(leaf);
    const variable_list found = torch::autograd::grad(defined, wanted, its_grads, true, true, true);
    variable_list result;
    size_t next = 0;
    for (const Tensor& leaf : leaves)
      result.push_back(leaf.defined() && leaf.requires_grad() ? found[next++] : Tensor());
    return result;
  }
};

std::vector<Tensor> weight_list(const variable_list& inputs, size_t first) {
  std::vector<Tensor> weights(inputs.begin() + static_cast<int64_t>(first), inputs.end());
  while (!weights.back().defined()) weights.pop_back();
  return weights;
}

struct LstmLayer : torch::autograd::Function<LstmLayer> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& hx, const Tensor& cx,
                               const Tensor& w_input, const Tensor& w_hidden, const std::optional<Tensor>& b_input,
                               const std::optional<Tensor>& b_hidden, bool reverse) {
    at::AutoDispatchBelowADInplaceOrView guard;
    const int64_t steps = input.size(0), batch = input.size(1), hidden = w_hidden.size(1);
    const Tensor x = input.contiguous(), w = w_hidden.t();
    const Tensor bx = b_input ? b_input->contiguous() : Tensor(), bh = b_hidden ? b_hidden->contiguous() : Tensor();
    const Tensor x_gates = at::mm(flat(x), w_input.t()).view({steps, batch, 4 * hidden});
    Tensor outputs = at::empty({steps, batch, hidden}, x.options()), cells = at::empty_like(outputs);
    Tensor workspace = at::empty_like(x_gates), h_gates = at::empty({batch, 4 * hidden}, x.options());
    Tensor h = hx, c = cx.contiguous();
    const Steps order{steps, reverse};
    for (int64_t i = 0; i < steps; i++) {
      const int64_t step = order[i];
      at::mm_out(h_gates, h, w);
      kernels::lstm_cell(
          stream_of(x), {to_dtype(x.scalar_type()), batch, hidden, at_step(x_gates, step), h_gates.const_data_ptr(),
                         data_or_null(bx), data_or_null(bh), i == 0 ? c.const_data_ptr() : at_step(cells, order[i - 1]),
                         at_step(outputs, step), at_step(cells, step), at_step(workspace, step)});
      h = outputs[step];
    }
    const int64_t last = order[steps - 1];
    ctx->save_for_backward({input, hx, cx, w_input, w_hidden, b_input.value_or(Tensor()), b_hidden.value_or(Tensor()),
                            outputs, cells, workspace});
    ctx->saved_data["reverse"] = reverse;
    ctx->set_materialize_grads(false);
    return {outputs, outputs[last].clone(), cells[last].clone()};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool reverse = ctx->saved_data["reverse"].toBool();
    if (at::GradMode::is_enabled()) return replay({saved.begin(), saved.begin() + 7}, reverse, grads);
    at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor &input = saved[0], &hx = saved[1], &cx = saved[2], &w_input = saved[3], &w_hidden = saved[4];
    const Tensor &outputs = saved[7], &cells = saved[8], &workspace = saved[9];
    const int64_t steps = outputs.size(0), batch = outputs.size(1), hidden = outputs.size(2);
    const Tensor grad_outputs = grads[0].defined() ? grads[0].contiguous() : Tensor();
    const Tensor c0 = cx.contiguous();
    Tensor grad_gates = at::empty_like(workspace);
    Tensor dh = grads[1].defined() ? grads[1].clone(at::MemoryFormat::Contiguous) : at::zeros_like(c0);
    Tensor dc = grads[2].defined() ? grads[2].clone(at::MemoryFormat::Contiguous) : Tensor();
    Tensor dc_before = at::empty_like(c0);
    const Steps order{steps, reverse};
    for (int64_t i = steps - 1; i >= 0; i--) {
      const int64_t step = order[i];
      if (grad_outputs.defined()) dh.add_(grad_outputs[step]);
      kernels::lstm_cell_backward(stream_of(dh),
                                  {to_dtype(dh.scalar_type()), batch, hidden, dh.const_data_ptr(), data_or_null(dc),
                                   i == 0 ? c0.const_data_ptr() : at_step(cells, order[i - 1]), at_step(cells, step),
                                   at_step(workspace, step), at_step(grad_gates, step), dc_before.mutable_data_ptr()});
      std::swap(dc, dc_before);
      if (!dc_before.defined()) dc_before = at::empty_like(c0);
      if (i > 0 || ctx->needs_input_grad(1)) at::mm_out(dh, grad_gates[step], w_hidden);
    }
    variable_list result(8);
    const Tensor all = flat(grad_gates);
    if (ctx->needs_input_grad(0)) result[0] = at::mm(all, w_input).view(input.sizes());
    if (ctx->needs_input_grad(1)) result[1] = dh;
    if (ctx->needs_input_grad(2)) result[2] = dc;
    if (ctx->needs_input_grad(3)) result[3] = at::mm(all.t(), flat(input.contiguous()));
    if (ctx->needs_input_grad(4)) result[4] = recurrent_gradient(grad_gates, hx, outputs, reverse);
    if (saved[5].defined() && (ctx->needs_input_grad(5) || ctx->needs_input_grad(6))) {
      result[5] = all.sum(0);
      result[6] = result[5];
    }
    return result;
  }

  static variable_list replay(const variable_list& inputs, bool reverse, const variable_list& grads) {
    const Replay again(inputs);
    const Tensor input = reverse ? inputs[0].flip(0) : inputs[0];
    const auto weights = weight_list(inputs, 3);
    auto [outputs, hy, cy] =
        at::native::lstm(input, std::vector<Tensor>{inputs[1].unsqueeze(0), inputs[2].unsqueeze(0)}, weights,
                         weights.size() == 4, 1, 0.0, true, false, false);
    variable_list result = again.gradients({reverse ? outputs.flip(0) : outputs, hy.squeeze(0), cy.squeeze(0)}, grads);
    result.emplace_back();
    return result;
  }
};

struct GruLayer : torch::autograd::Function<GruLayer> {
  static variable_list forward(AutogradContext* ctx, const Tensor& input, const Tensor& hx, const Tensor& w_input,
                               const Tensor& w_hidden, const std::optional<Tensor>& b_input,
                               const std::optional<Tensor>& b_hidden, bool reverse) {
    at::AutoDispatchBelowADInplaceOrView guard;
    const int64_t steps = input.size(0), batch = input.size(1), hidden = w_hidden.size(1);
    const Tensor x = input.contiguous(), w = w_hidden.t(), h0 = hx.contiguous();
    const Tensor bx = b_input ? b_input->contiguous() : Tensor(), bh = b_hidden ? b_hidden->contiguous() : Tensor();
    const Tensor x_gates = at::mm(flat(x), w_input.t()).view({steps, batch, 3 * hidden});
    Tensor outputs = at::empty({steps, batch, hidden}, x.options());
    Tensor workspace = at::empty({steps, batch, 5 * hidden}, x.options());
    Tensor h_gates = at::empty({batch, 3 * hidden}, x.options()), h = h0;
    const Steps order{steps, reverse};
    for (int64_t i = 0; i < steps; i++) {
      const int64_t step = order[i];
      at::mm_out(h_gates, h, w);
      kernels::gru_cell(stream_of(x), {to_dtype(x.scalar_type()), batch, hidden, at_step(x_gates, step),
                                       h_gates.const_data_ptr(), data_or_null(bx), data_or_null(bh), h.const_data_ptr(),
                                       at_step(outputs, step), at_step(workspace, step)});
      h = outputs[step];
    }
    ctx->save_for_backward(
        {input, hx, w_input, w_hidden, b_input.value_or(Tensor()), b_hidden.value_or(Tensor()), outputs, workspace});
    ctx->saved_data["reverse"] = reverse;
    ctx->set_materialize_grads(false);
    return {outputs, outputs[order[steps - 1]].clone()};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    const bool reverse = ctx->saved_data["reverse"].toBool();
    if (at::GradMode::is_enabled()) return replay({saved.begin(), saved.begin() + 6}, reverse, grads);
    at::AutoDispatchBelowADInplaceOrView guard;
    const Tensor &input = saved[0], &hx = saved[1], &w_input = saved[2], &w_hidden = saved[3];
    const Tensor &outputs = saved[6], &workspace = saved[7];
    const int64_t steps = outputs.size(0), batch = outputs.size(1), hidden = outputs.size(2);
    const Tensor grad_outputs = grads[0].defined() ? grads[0].contiguous() : Tensor();
    Tensor grad_input_gates = at::empty({steps, batch, 3 * hidden}, outputs.options());
    Tensor grad_hidden_gates = at::empty_like(grad_input_gates);
    Tensor dh = grads[1].defined() ? grads[1].clone(at::MemoryFormat::Contiguous)
                                   : at::zeros_like(hx, at::MemoryFormat::Contiguous);
    Tensor dh_before = at::empty_like(dh);
    const Steps order{steps, reverse};
    for (int64_t i = steps - 1; i >= 0; i--) {
      const int64_t step = order[i];
      if (grad_outputs.defined()) dh.add_(grad_outputs[step]);
      kernels::gru_cell_backward(stream_of(dh), {to_dtype(dh.scalar_type()), batch, hidden, dh.const_data_ptr(),
                                                 at_step(workspace, step), at_step(grad_input_gates, step),
                                                 at_step(grad_hidden_gates, step), dh_before.mutable_data_ptr()});
      std::swap(dh, dh_before);
      if (i > 0 || ctx->needs_input_grad(1)) dh.addmm_(grad_hidden_gates[step], w_hidden);
    }
    variable_list result(7);
    const Tensor all = flat(grad_input_gates);
    if (ctx->needs_input_grad(0)) result[0] = at::mm(all, w_input).view(input.sizes());
    if (ctx->needs_input_grad(1)) result[1] = dh;
    if (ctx->needs_input_grad(2)) result[2] = at::mm(all.t(), flat(input.contiguous()));
    if (ctx->needs_input_grad(3)) result[3] = recurrent_gradient(grad_hidden_gates, hx, outputs, reverse);
    if (saved[4].defined() && ctx->needs_input_grad(4)) result[4] = all.sum(0);
    if (saved[5].defined() && ctx->needs_input_grad(5)) result[5] = flat(grad_hidden_gates).sum(0);
    return result;
  }

  static variable_list replay(const variable_list& inputs, bool reverse, const variable_list& grads) {
    const Replay again(inputs);
    const Tensor input = reverse ? inputs[0].flip(0) : inputs[0];
    const auto weights = weight_list(inputs, 2);
    auto [outputs, hy] =
        at::native::gru(input, inputs[1].unsqueeze(0), weights, weights.size() == 4, 1, 0.0, true, false, false);
    variable_list result = again.gradients({reverse ? outputs.flip(0) : outputs, hy.squeeze(0)}, grads);
    result.emplace_back();
    return result;
  }
};

}  // namespace

// The engine's function takes a tensor that is not there as an optional only.
static std::optional<Tensor> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Tensor>(tensor) : std::nullopt;
}

std::tuple<Tensor, Tensor, Tensor> lstm_layer(const Tensor& input, const Tensor& hx, const Tensor& cx,
                                              const LayerWeights& w, bool reverse) {
  variable_list results =
      LstmLayer::apply(input, hx, cx, w.input, w.hidden, if_defined(w.input_bias), if_defined(w.hidden_bias), reverse);
  return {results[0], results[1], results[2]};
}

std::tuple<Tensor, Tensor> gru_layer(const Tensor& input, const Tensor& hx, const LayerWeights& w, bool reverse) {
  variable_list results =
      GruLayer::apply(input, hx, w.input, w.hidden, if_defined(w.input_bias), if_defined(w.hidden_bias), reverse);
  return {results[0], results[1]};
}

}  // namespace mybackend::aten
