// _standard_gamma, _sample_dirichlet, poisson, binomial, and the gradients of the first two. torch.distributions calls
// them.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>

#include <limits>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/distributions.h"
#include "csrc/runtime/generator.h"
#include "csrc/runtime/stream.h"
#include "generated/distributions.h"

namespace mybackend::aten {
namespace {

using at::Generator;
using at::Tensor;

kernels::Seed reserve(const std::optional<Generator>& generator) {
  const auto [seed, offset] = runtime::philox(generator, kernels::kWordsPerDraw);
  return {seed, offset};
}

// A new tensor like `first`, by `kernel` from all inputs element by element.
template <class Kernel, class... Inputs, class... Rest>
Tensor elementwise(const Kernel& kernel, const char* name, const std::tuple<Inputs...>& inputs, Rest... rest) {
  const Tensor& first = std::get<0>(inputs);
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(first.scalar_type()), "\"", name, "\" not implemented for '",
                              at::toString(first.scalar_type()), "'");
  Tensor out = at::empty_like(first);
  at::TensorIteratorConfig config;
  config.add_output(out).resize_outputs(false);
  std::apply([&](const auto&... input) { (config.add_const_input(input), ...); }, inputs);
  at::TensorIterator iter = config.build();
  if (iter.numel() > 0)
    kernel(runtime::current_stream(first.device().index()), operands_of<1 + sizeof...(Inputs)>(iter), rest...);
  return out;
}

double smallest_normal(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return std::numeric_limits<double>::min();
    case at::kHalf:
      return std::numeric_limits<c10::Half>::min();
    default:
      return std::numeric_limits<float>::min();
  }
}

}  // namespace

Tensor _standard_gamma(const Tensor& self, std::optional<Generator> generator) {
  return elementwise(kernels::gamma_sample, "gamma", std::tie(self), reserve(generator))
      .clamp_min_(smallest_normal(self.scalar_type()));
}

Tensor _standard_gamma_grad(const Tensor& self, const Tensor& output) {
  return elementwise(kernels::gamma_gradient, "_standard_gamma_grad", std::tie(self, output));
}

Tensor _sample_dirichlet(const Tensor& self, std::optional<Generator> generator) {
  const Tensor samples = aten::_standard_gamma(self, std::move(generator));
  return samples.div(samples.sum(-1, /*keepdim=*/true));
}

Tensor _dirichlet_grad(const Tensor& x, const Tensor& alpha, const Tensor& total) {
  return elementwise(kernels::dirichlet_gradient, "_dirichlet_grad", std::tie(x, alpha, total));
}

Tensor poisson(const Tensor& self, std::optional<Generator> generator) {
  TORCH_CHECK(!self.lt(0).any().item<bool>(), "invalid Poisson rate, expected rate to be non-negative");
  return elementwise(kernels::poisson_sample, "poisson", std::tie(self), reserve(generator));
}

Tensor binomial(const Tensor& count, const Tensor& prob, std::optional<Generator> generator) {
  return elementwise(kernels::binomial_sample, "binomial", std::tie(count, prob), reserve(generator));
}

}  // namespace mybackend::aten
