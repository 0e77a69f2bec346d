// Recurrent cells: nn.LSTM and nn.GRU reach these from upstream's layer loops, nn.LSTMCell and nn.GRUCell directly. The
// matrix products come before and are ATen's; here is the pointwise rest in one kernel, forward and backward.
#include <ATen/TensorUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/rnn.h"
#include "csrc/runtime/stream.h"
#include "generated/rnn.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

void check_cell(const char* name, const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& state,
                const std::optional<Tensor>& input_bias, const std::optional<Tensor>& hidden_bias, int64_t gates) {
  const at::TensorArg input(input_gates, "input_gates", 1), hidden(hidden_gates, "hidden_gates", 2);
  at::checkDim(name, input, 2);
  at::checkSameSize(name, input, hidden);
  at::checkSameType(name, input, hidden);
  const int64_t columns = input_gates.size(1);
  if (input_bias && input_bias->defined()) {
    const at::TensorArg first(*input_bias, "input_bias", 3), second(*hidden_bias, "hidden_bias", 4);
    at::checkDim(name, first, 1);
    at::checkNumel(name, first, columns);
    at::checkSameSize(name, first, second);
  }
  const at::TensorArg previous(state, "prev_hidden", 5);
  at::checkDim(name, previous, 2);
  at::checkNumel(name, previous, input_gates.size(0) * columns / gates);
}

Tensor dense(const std::optional<Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->contiguous() : Tensor();
}
const void* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}
device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.get_device());
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> _thnn_fused_lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                                         const Tensor& cx, const std::optional<Tensor>& input_bias,
                                                         const std::optional<Tensor>& hidden_bias) {
  check_cell("_thnn_fused_lstm_cell", input_gates, hidden_gates, cx, input_bias, hidden_bias, 4);
  const Tensor x = input_gates.contiguous(), h = hidden_gates.contiguous(), c = cx.contiguous();
  const Tensor bx = dense(input_bias), bh = dense(hidden_bias);
  Tensor hy = at::empty_like(c), cy = at::empty_like(c), workspace = at::empty_like(x);
  if (c.numel() != 0) {
    kernels::lstm_cell(stream_of(x), {to_dtype(x.scalar_type()), c.size(0), c.size(1), x.const_data_ptr(),
                                      h.const_data_ptr(), data_or_null(bx), data_or_null(bh), c.const_data_ptr(),
                                      hy.mutable_data_ptr(), cy.mutable_data_ptr(), workspace.mutable_data_ptr()});
  }
  return {hy, cy, workspace};
}

std::tuple<Tensor, Tensor, Tensor> _thnn_fused_lstm_cell_backward_impl(const std::optional<Tensor>& grad_hy,
                                                                       const std::optional<Tensor>& grad_cy,
                                                                       const Tensor& cx, const Tensor& cy,
                                                                       const Tensor& workspace, bool has_bias) {
  const Tensor dh = dense(grad_hy), dc = dense(grad_cy);
  if (!dh.defined() && !dc.defined()) return {};
  const Tensor c0 = cx.contiguous(), c1 = cy.contiguous(), kept = workspace.contiguous();
  Tensor grad_gates = at::empty_like(kept), grad_cx = at::empty_like(c0);
  if (c0.numel() != 0) {
    kernels::lstm_cell_backward(
        stream_of(kept),
        {to_dtype(kept.scalar_type()), c0.size(0), c0.size(1), data_or_null(dh), data_or_null(dc), c0.const_data_ptr(),
         c1.const_data_ptr(), kept.const_data_ptr(), grad_gates.mutable_data_ptr(), grad_cx.mutable_data_ptr()});
  }
  return {grad_gates, grad_cx, has_bias ? grad_gates.sum(0) : Tensor()};
}

std::tuple<Tensor, Tensor> _thnn_fused_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                                                const std::optional<Tensor>& input_bias,
                                                const std::optional<Tensor>& hidden_bias) {
  check_cell("_thnn_fused_gru_cell", input_gates, hidden_gates, hx, input_bias, hidden_bias, 3);
  const Tensor x = input_gates.contiguous(), h = hidden_gates.contiguous(), h0 = hx.contiguous();
  const Tensor bx = dense(input_bias), bh = dense(hidden_bias);
  Tensor hy = at::empty_like(h0), workspace = at::empty({h0.size(0), h0.size(1) * 5}, h0.options());
  if (h0.numel() != 0) {
    kernels::gru_cell(stream_of(x), {to_dtype(x.scalar_type()), h0.size(0), h0.size(1), x.const_data_ptr(),
                                     h.const_data_ptr(), data_or_null(bx), data_or_null(bh), h0.const_data_ptr(),
                                     hy.mutable_data_ptr(), workspace.mutable_data_ptr()});
  }
  return {hy, workspace};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> _thnn_fused_gru_cell_backward(const Tensor& grad_hy,
                                                                                 const Tensor& workspace,
                                                                                 bool has_bias) {
  const Tensor dh = grad_hy.contiguous(), kept = workspace.contiguous();
  const int64_t rows = kept.size(0), hidden = kept.size(1) / 5;
  Tensor grad_input = at::empty({rows, hidden * 3}, kept.options()), grad_hidden = at::empty_like(grad_input);
  Tensor grad_hx = at::empty_like(dh);
  if (dh.numel() != 0) {
    kernels::gru_cell_backward(
        stream_of(kept), {to_dtype(kept.scalar_type()), rows, hidden, dh.const_data_ptr(), kept.const_data_ptr(),
                          grad_input.mutable_data_ptr(), grad_hidden.mutable_data_ptr(), grad_hx.mutable_data_ptr()});
  }
  if (!has_bias) return {grad_input, grad_hidden, grad_hx, Tensor(), Tensor()};
  return {grad_input, grad_hidden, grad_hx, grad_input.sum(0), grad_hidden.sum(0)};
}

}  // namespace mybackend::aten
