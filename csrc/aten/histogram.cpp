// histogram and histogramdd: places by searchsorted, sums by index_add. No other device of upstream's has histogram;
// checks and wording are those of its CPU functions.
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "generated/histogram.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorList;
using OptionalTensor = std::optional<Tensor>;
using OptionalRange = std::optional<at::ArrayRef<double>>;

void check_inputs(const Tensor& input, TensorList bins, const OptionalTensor& weight) {
  TORCH_CHECK(input.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions, but got ",
              input.dim());
  const int64_t n = input.size(-1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == n, "torch.histogramdd: expected ", n,
              " sequences of bin edges for a ", n, "-dimensional histogram but got ", bins.size());
  for (int64_t d = 0; d < n; d++) {
    const Tensor& edges = bins[d];
    TORCH_CHECK(
        input.dtype() == edges.dtype(),
        "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype ",
        input.dtype(), " and bins for dimension ", d, " with dtype ", edges.dtype());
    TORCH_CHECK(edges.dim() == 1, "torch.histogramdd: bins tensor should have one dimension, but got ", edges.dim(),
                " dimensions in the bins tensor for dimension ", d);
    TORCH_CHECK(edges.numel() > 0, "torch.histogramdd: bins tensor should have at least 1 element, but got ",
                edges.numel(), " elements in the bins tensor for dimension ", d);
  }
  if (!weight.has_value()) return;
  TORCH_CHECK(input.dtype() == weight->dtype(),
              "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
              "dtype, but got input(",
              input.dtype(), "), and weight(", weight->dtype(), ")");
  const at::IntArrayRef points = input.sizes().slice(0, input.dim() - 1);
  const bool scalar = weight->dim() == 0 && points == at::IntArrayRef{1};
  TORCH_CHECK(scalar || weight->sizes() == points,
              "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
              "excluding its innermost dimension, but got input with shape ",
              input.sizes(), " and weight with shape ", weight->sizes());
}

// Sums of the weights of the points (..., n) that lie in each cell of the grid that `bins` are the edges of.
Tensor histogram_of(const Tensor& input, TensorList bins, const OptionalTensor& weight, bool density) {
  check_inputs(input, bins, weight);
  TORCH_CHECK_NOT_IMPLEMENTED(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble,
                              "\"histogramdd\" not implemented for '", at::toString(input.scalar_type()), "'");
  const int64_t n = input.size(-1);
  const Tensor points = input.reshape({-1, n});
  c10::DimVector counts;
  int64_t cells = 1;
  for (const Tensor& edges : bins) {
    counts.push_back(edges.numel() - 1);
    cells *= edges.numel() - 1;
  }
  Tensor cell = at::zeros({points.size(0)}, input.options().dtype(at::kLong));
  Tensor inside = at::ones({points.size(0)}, input.options().dtype(at::kBool));
  for (int64_t d = 0; d < n; d++) {
    const Tensor x = points.select(1, d).contiguous(), edges = bins[d].contiguous();
    const Tensor first = edges.select(0, 0), last = edges.select(0, counts[d]);
    inside.logical_and_(x.ge(first)).logical_and_(x.le(last));  // NaN is in no bin
    // The last bin has both of its edges.
    const Tensor place = at::searchsorted(edges, x, /*out_int32=*/false, /*right=*/true).sub_(1);
    cell.mul_(counts[d]).add_(place.clamp_max_(counts[d] - 1));
  }
  // What is outside goes to a cell beyond the last, which is left off.
  cell = at::where(inside, cell, at::Scalar(cells));
  const Tensor each = weight.has_value() ? weight->reshape({-1}) : at::ones({points.size(0)}, input.options());
  Tensor hist =
      at::zeros({cells + 1}, input.options()).index_add_(0, cell, each).narrow(0, 0, cells).reshape(counts).clone();
  if (!density) return hist;
  hist.div_(hist.sum());
  for (int64_t d = 0; d < n; d++) {
    c10::DimVector along(n, 1);
    along[d] = counts[d];
    hist.div_(bins[d].diff().reshape(along));
  }
  return hist;
}

// Equal bins over `range` (lowest and highest of each dimension), or over what the points span.
std::vector<Tensor> edges_of(const Tensor& input, at::IntArrayRef counts, const OptionalRange& range) {
  TORCH_CHECK(input.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  const int64_t n = input.size(-1);
  TORCH_CHECK(static_cast<int64_t>(counts.size()) == n,
              "torch.histogramdd: The size of bins must be equal to the innermost dimension of the input.");
  std::vector<double> low(n, 0), high(n, 1);
  if (range.has_value()) {
    TORCH_CHECK(static_cast<int64_t>(range->size()) == 2 * n, "torch.histogramdd: for a ", n,
                "-dimensional histogram range should have ", 2 * n, " elements, but got ", range->size());
    for (int64_t d = 0; d < n; d++) {
      low[d] = (*range)[2 * d];
      high[d] = (*range)[2 * d + 1];
    }
  } else if (input.numel() > 0) {
    const Tensor points = input.reshape({-1, n});
    const Tensor lowest = points.amin(0).to(at::Device(at::kCPU), at::kDouble);
    const Tensor highest = points.amax(0).to(at::Device(at::kCPU), at::kDouble);
    for (int64_t d = 0; d < n; d++) {
      low[d] = lowest.const_data_ptr<double>()[d];
      high[d] = highest.const_data_ptr<double>()[d];
    }
  }
  std::vector<Tensor> edges;
  for (int64_t d = 0; d < n; d++) {
    TORCH_CHECK(std::isfinite(low[d]) && std::isfinite(high[d]), "torch.histogramdd: dimension ", d, "'s range [",
                low[d], ", ", high[d], "] is not finite");
    TORCH_CHECK(low[d] <= high[d], "torch.histogramdd: min should not exceed max, but got min ", low[d], " max ",
                high[d], " for dimension ", d);
    if (low[d] == high[d]) {
      low[d] -= 0.5;
      high[d] += 0.5;
    }
    edges.push_back(at::linspace(low[d], high[d], counts[d] + 1, input.options()));
  }
  return edges;
}

OptionalTensor line(const OptionalTensor& weight, const Tensor& self) {
  if (!weight.has_value()) return std::nullopt;
  TORCH_CHECK(weight->sizes() == self.sizes(),
              "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
              "excluding its innermost dimension, but got input with shape ",
              self.reshape({self.numel(), 1}).sizes(), " and weight with shape ", weight->reshape({-1}).sizes());
  return weight->reshape({-1});
}

using Pair = std::tuple<Tensor, Tensor>;
using PairOut = std::tuple<Tensor&, Tensor&>;

PairOut give(const Pair& result, Tensor& hist, Tensor& edges) {
  const auto& [values, places] = result;
  TORCH_CHECK(hist.dtype() == values.dtype(),
              "torch.histogram: input tensor and hist tensor should have the same dtype, but got input ",
              values.dtype(), " and hist ", hist.dtype());
  at::native::resize_output(hist, values.sizes());
  at::native::resize_output(edges, places.sizes());
  hist.copy_(values);
  edges.copy_(places);
  return {hist, edges};
}

}  // namespace

Pair histogram_bins_tensor(const Tensor& self, const Tensor& bins, const OptionalTensor& weight, bool density) {
  return {histogram_of(self.reshape({self.numel(), 1}), bins, line(weight, self), density), bins.clone()};
}

PairOut histogram_bins_tensor_out(const Tensor& self, const Tensor& bins, const OptionalTensor& weight, bool density,
                                  Tensor& hist, Tensor& bin_edges) {
  return give(aten::histogram_bins_tensor(self, bins, weight, density), hist, bin_edges);
}

Pair histogram_bin_ct(const Tensor& self, int64_t bin_ct, OptionalRange range, const OptionalTensor& weight,
                      bool density) {
  const Tensor points = self.reshape({self.numel(), 1});
  TORCH_CHECK(bin_ct > 0, "torch.histogram(): bins must be > 0, but got ", bin_ct, " for dimension 0");
  Tensor edges = edges_of(points, {bin_ct}, range)[0];
  return {histogram_of(points, edges, line(weight, self), density), edges};
}

PairOut histogram_bin_ct_out(const Tensor& self, int64_t bin_ct, OptionalRange range, const OptionalTensor& weight,
                             bool density, Tensor& hist, Tensor& bin_edges) {
  return give(aten::histogram_bin_ct(self, bin_ct, range, weight, density), hist, bin_edges);
}

std::vector<Tensor> _histogramdd_bin_edges(const Tensor& self, at::IntArrayRef bins, OptionalRange range,
                                           const OptionalTensor& /*weight*/, bool /*density*/) {
  return edges_of(self, bins, range);
}

Tensor _histogramdd_from_bin_cts(const Tensor& self, at::IntArrayRef bins, OptionalRange range,
                                 const OptionalTensor& weight, bool density) {
  return histogram_of(self, edges_of(self, bins, range), weight, density);
}

Tensor _histogramdd_from_bin_tensors(const Tensor& self, TensorList bins, const OptionalTensor& weight, bool density) {
  return histogram_of(self, bins, weight, density);
}

}  // namespace mybackend::aten
