// How often values occur: bincount, histc, mode, isin. Each is a few operators of this device; checks and wording are
// those of upstream's CUDA functions.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cummax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "generated/counting.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// `counts[i]` is the sum of `weights` (of ones) where `bins` is i; `bins` are int64 in [0, count).
Tensor count_in_bins(const Tensor& bins, const Tensor& weights, int64_t count) {
  return at::zeros({count}, weights.options()).index_add_(0, bins, weights);
}

void is_in(const Tensor& elements, const Tensor& test_elements, bool invert, const Tensor& out) {
  std::vector<int64_t> shape(static_cast<size_t>(elements.dim()), 1);
  shape.push_back(test_elements.numel());
  const Tensor candidates = test_elements.reshape(shape), wide = elements.unsqueeze(-1);
  out.copy_(invert ? at::ne(wide, candidates).all(-1) : at::eq(wide, candidates).any(-1));
}

Tensor histogram(const Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  TORCH_CHECK(bins > 0, "bins must be > 0");
  double low = min.toDouble(), high = max.toDouble();
  const Tensor x = self.reshape({-1});
  if (low == high && x.numel() > 0) {
    const auto [smallest, largest] = at::aminmax(x);
    low = smallest.item<double>();
    high = largest.item<double>();
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  TORCH_CHECK(std::isfinite(low) && std::isfinite(high), "range of [", low, ", ", high, "] is not finite");
  TORCH_CHECK(low < high, "max must be larger than min");
  const Tensor inside = x.ge(low).logical_and_(x.le(high));
  const Tensor place = x.sub(low).mul(static_cast<double>(bins)).div(high - low).to(c10::kLong).clamp_max_(bins - 1);
  // What is out of range goes to a bin beyond the last, which is left off.
  const Tensor bin = at::where(inside, place, at::Scalar(bins));
  return count_in_bins(bin, at::ones({x.numel()}, self.options()), bins + 1).narrow(0, 0, bins).clone();
}

}  // namespace

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights_option, int64_t minlength) {
  const Tensor weights = weights_option.value_or(Tensor());
  TORCH_CHECK(minlength >= 0, "minlength should be >= 0");
  TORCH_CHECK(at::isIntegralType(self.scalar_type(), /*includeBool=*/false), "\"bincount\" not implemented for '",
              at::toString(self.scalar_type()), "'");
  if (self.dim() == 1 && self.numel() == 0) return at::zeros({minlength}, self.options().dtype(c10::kLong));
  TORCH_CHECK(self.dim() == 1 && self.min().item<int64_t>() >= 0,
              "bincount only supports 1-d non-negative integral inputs.");
  TORCH_CHECK(!weights.defined() || (weights.dim() == 1 && weights.size(0) == self.size(0)),
              "weights should be 1-d and have the same length as input");
  const int64_t largest = self.max().item<int64_t>();
  TORCH_CHECK(largest < std::numeric_limits<int64_t>::max(), "maximum value of input overflowed, it should be < ",
              std::numeric_limits<int64_t>::max(), " but got ", largest);
  const Tensor each = !weights.defined() ? at::ones({self.numel()}, self.options().dtype(c10::kLong))
                      : weights.scalar_type() == c10::kFloat ? weights
                                                             : weights.to(c10::kDouble);
  return count_in_bins(self.to(c10::kLong), each, std::max(largest + 1, minlength));
}

Tensor histc(const Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max) {
  return histogram(self, bins, min, max);
}

Tensor& histc_out(const Tensor& self, int64_t bins, const at::Scalar& min, const at::Scalar& max, Tensor& out) {
  const Tensor result = histogram(self, bins, min, max);
  TORCH_CHECK(out.scalar_type() == result.scalar_type(),
              "torch.histogram: input tensor and hist tensor should have the same ", "dtype, but got input ",
              self.scalar_type(), " and hist ", out.scalar_type());
  at::native::resize_output(out, result.sizes());
  return out.copy_(result);
}

// In a sorted line the longest run of equal elements: its length so far is counted at every place, and the first place
// where the count is largest is the end of the first longest run.
std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim_given, bool keepdim) {
  const int64_t dim = at::maybe_wrap_dim(dim_given, self.dim());
  if (self.numel() == 0) {
    const auto sizes = at::native::get_zero_numel_tensor_size(self, dim, keepdim, "mode()");
    return {at::empty(sizes, self.options()), at::empty(sizes, self.options().dtype(c10::kLong))};
  }
  if (self.dim() == 0) return {self.clone(), at::zeros({}, self.options().dtype(c10::kLong))};
  const auto [sorted, order] = self.sort(/*stable=*/true, dim, /*descending=*/false);
  const int64_t n = self.size(dim);
  std::vector<int64_t> along(static_cast<size_t>(self.dim()), 1);
  along[static_cast<size_t>(dim)] = n;
  const Tensor place = at::arange(n, self.options().dtype(c10::kLong)).view(along).expand(self.sizes());
  Tensor run_start = at::zeros(self.sizes(), place.options());
  if (n > 1) {
    const Tensor begins = sorted.narrow(dim, 1, n - 1).ne(sorted.narrow(dim, 0, n - 1));
    run_start.narrow(dim, 1, n - 1).copy_(place.narrow(dim, 1, n - 1).mul(begins));
  }
  const Tensor length = place.sub(std::get<0>(at::cummax(run_start, dim)));
  const Tensor last = length.argmax(dim, /*keepdim=*/true);
  Tensor values = sorted.gather(dim, last), indices = order.gather(dim, last);
  if (keepdim) return {std::move(values), std::move(indices)};
  return {values.squeeze(dim), indices.squeeze(dim)};
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(isin_default_stub, &mybackend::aten::is_in)
}  // namespace at::native
