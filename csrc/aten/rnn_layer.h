// One layer, in one direction, of an LSTM or GRU over a whole sequence, with its gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace mybackend::aten {

struct LayerWeights {
  at::Tensor input, hidden;            // (gates * hidden, features), (gates * hidden, hidden)
  at::Tensor input_bias, hidden_bias;  // (gates * hidden), or both undefined
};

// input (time, batch, features), hx and cx (batch, hidden): outputs (time, batch, hidden), hy, cy. Differentiable,
// twice too. `reverse` goes from the last step to the first.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_layer(const at::Tensor& input, const at::Tensor& hx,
                                                          const at::Tensor& cx, const LayerWeights& weights,
                                                          bool reverse);
std::tuple<at::Tensor, at::Tensor> gru_layer(const at::Tensor& input, const at::Tensor& hx, const LayerWeights& weights,
                                             bool reverse);

}  // namespace mybackend::aten
