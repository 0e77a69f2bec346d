// aten::lstm.input and aten::gru.input over whole layers (rnn_layer.h). Both are CompositeImplicitAutograd: the kernels
// are registered for autograd's key, are differentiable by themselves, and are passed by in inference mode.
//
// Only plain calls are taken: tensors of one dtype and device without projection, autocast, forward-mode derivatives,
// functorch or Python dispatch, and with the shapes that nn.LSTM and nn.GRU pass. Any other call, wrong ones included,
// goes to upstream's composite implementation.
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/stack.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include "csrc/aten/rnn_layer.h"
#include "csrc/runtime/device.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorList;

struct Network {
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t weights() const { return has_biases ? 4 : 2; }
};

bool is_plain(const Tensor& tensor, const Tensor& input) {
  constexpr auto special =
      c10::python_ks | c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                                            c10::DispatchKey::Functionalize});
  return tensor.defined() && tensor.device() == input.device() && tensor.dtype() == input.dtype() &&
         tensor.layout() == at::kStrided && !tensor.key_set().has_any(special) && !tensor._fw_grad(0).defined();
}

bool no_interception() {
  const auto included = c10::impl::tls_local_dispatch_key_set().included_;
  return !c10::impl::dispatch_mode_enabled() && !included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) &&
         !at::autocast::is_autocast_enabled(runtime::kDeviceType);
}

// Whether the layers can run here: everything that the kernels take for granted.
bool takes(const Tensor& input, TensorList states, TensorList params, const Network& net, int64_t gates) {
  if (!no_interception() || input.dim() != 3 || !input.is_floating_point() || input.numel() == 0) return false;
  if (static_cast<int64_t>(params.size()) != net.layers * net.directions() * net.weights()) return false;
  for (const Tensor& state : states)
    if (state.dim() != 3) return false;
  const int64_t batch = input.size(net.batch_first ? 0 : 1), hidden = states[0].size(2);
  const int64_t expected[] = {net.layers * net.directions(), batch, hidden};
  for (const Tensor& state : states)
    if (!is_plain(state, input) || state.sizes() != at::IntArrayRef(expected)) return false;
  if (hidden == 0) return false;
  int64_t features = input.size(2);
  for (size_t i = 0; i < params.size(); i++) {
    const int64_t kind = static_cast<int64_t>(i) % net.weights();
    const Tensor& weight = params[i];
    if (!is_plain(weight, input) || weight.dim() != (kind < 2 ? 2 : 1) || weight.size(0) != gates * hidden)
      return false;
    if (kind == 0 && weight.size(1) != features) return false;
    if (kind == 1 && weight.size(1) != hidden) return false;
    if (static_cast<int64_t>(i + 1) % (net.weights() * net.directions()) == 0) features = hidden * net.directions();
  }
  return is_plain(input, input);
}

LayerWeights weights_of(TensorList params, const Network& net, int64_t index) {
  const size_t at = static_cast<size_t>(index * net.weights());
  if (!net.has_biases) return {params[at], params[at + 1], {}, {}};
  return {params[at], params[at + 1], params[at + 2], params[at + 3]};
}

// Runs run(x, index, weights, reverse) -> outputs for every layer and direction.
template <class Run>
Tensor through_layers(const Tensor& input, TensorList params, const Network& net, const Run& run) {
  Tensor x = net.batch_first ? input.transpose(0, 1) : input;
  for (int64_t layer = 0; layer < net.layers; layer++) {
    std::vector<Tensor> outputs;
    for (int64_t direction = 0; direction < net.directions(); direction++) {
      const int64_t index = layer * net.directions() + direction;
      outputs.push_back(run(x, index, weights_of(params, net, index), direction == 1));
    }
    x = outputs.size() == 1 ? outputs[0] : at::cat(outputs, -1);
    if (net.dropout > 0 && net.train && layer + 1 < net.layers) x = at::dropout(x, net.dropout, true);
  }
  return net.batch_first ? x.transpose(0, 1) : x;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  const Network net{has_biases, num_layers, dropout, train, bidirectional, batch_first};
  if (hx.size() != 2 || !takes(input, hx, params, net, 4))
    return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  const c10::OptionalDeviceGuard guard(input.device());
  std::vector<Tensor> hy, cy;
  Tensor outputs = through_layers(input, params, net,
                                  [&](const Tensor& x, int64_t index, const LayerWeights& weights, bool reverse) {
                                    auto [out, h, c] = lstm_layer(x, hx[0][index], hx[1][index], weights, reverse);
                                    hy.push_back(h);
                                    cy.push_back(c);
                                    return out;
                                  });
  return {outputs, at::stack(hy), at::stack(cy)};
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,
                               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const Network net{has_biases, num_layers, dropout, train, bidirectional, batch_first};
  if (!takes(input, hx, params, net, 3))
    return at::native::gru(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  const c10::OptionalDeviceGuard guard(input.device());
  std::vector<Tensor> hy;
  Tensor outputs = through_layers(input, params, net,
                                  [&](const Tensor& x, int64_t index, const LayerWeights& weights, bool reverse) {
                                    auto [out, h] = gru_layer(x, hx[index], weights, reverse);
                                    hy.push_back(h);
                                    return out;
                                  });
  return {outputs, at::stack(hy)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("lstm.input", &lstm);
  m.impl("gru.input", &gru);
}

}  // namespace mybackend::aten
