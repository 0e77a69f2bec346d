// kthvalue, median and nanmedian; upstream's CPU and CUDA functions are separate, so their checks and wording are
// repeated.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/reduction.h"
#include "csrc/kernels/select.h"
#include "generated/select.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using kernels::Place;

void select(const Tensor& self, std::optional<int64_t> dim, const Tensor& values, const Tensor& indices, Place place,
            int64_t k) {
  kernels::select_place(runtime::current_stream(self.device().index()), reduction_over(self, dim, values, indices),
                        place, k);
}

std::vector<int64_t> sizes_without(const Tensor& self, int64_t dim, bool keepdim) {
  std::vector<int64_t> sizes = self.sizes().vec();
  if (self.dim() == 0) return sizes;
  if (keepdim)
    sizes[static_cast<size_t>(dim)] = 1;
  else
    sizes.erase(sizes.begin() + dim);
  return sizes;
}

std::tuple<Tensor&, Tensor&> median_along(const Tensor& self, int64_t dim_given, bool keepdim, Tensor& values,
                                          Tensor& indices, Place place) {
  const int64_t dim = at::maybe_wrap_dim(dim_given, self.dim());
  at::checkDeviceType("median", {values, indices}, self.device().type());
  at::checkScalarType("median", {indices, "indices", 1}, c10::kLong);
  at::checkSameType("median", {values, "values", 0}, {self, "self", 2});
  at::native::zero_numel_check_dims(self, dim, "median()");
  const auto sizes = sizes_without(self, dim, keepdim);
  at::native::resize_output(values, sizes);
  at::native::resize_output(indices, sizes);
  if (self.dim() == 0 || self.numel() == 0) {
    if (self.numel() > 0) {
      values.fill_(self);
      indices.fill_(0);
    }
  } else {
    select(self, dim, values, indices, place, 0);
  }
  return std::forward_as_tuple(values, indices);
}

Tensor median_of_all(const Tensor& self, Place place) {
  Tensor result = at::empty({}, self.options());
  if (self.numel() == 0) return result.fill_(std::numeric_limits<float>::quiet_NaN());
  select(self, std::nullopt, result, {}, place, 0);
  return result;
}

}  // namespace

std::tuple<Tensor&, Tensor&> kthvalue_values(const Tensor& self, int64_t k, int64_t dim_given, bool keepdim,
                                             Tensor& values, Tensor& indices) {
  const int64_t dim = at::maybe_wrap_dim(dim_given, self.dim(), /*wrap_scalar=*/true);
  at::native::zero_numel_check_dims(self, dim, "kthvalue()");
  const int64_t size = self.dim() > 0 ? self.size(dim) : 1;
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", dim);
  at::assert_no_overlap(self, values);
  at::assert_no_overlap(self, indices);
  const auto sizes = sizes_without(self, dim, keepdim);
  at::native::resize_output(values, sizes);
  at::native::resize_output(indices, sizes);
  if (self.dim() == 0 && self.numel() == 1) {
    values.copy_(self);
    indices.zero_();
  } else if (self.numel() > 0) {
    select(self, dim, values, indices, Place::Given, k - 1);
  }
  return std::forward_as_tuple(values, indices);
}

Tensor median(const Tensor& self) {
  return median_of_all(self, Place::Median);
}
Tensor nanmedian(const Tensor& self) {
  return median_of_all(self, Place::NanMedian);
}

std::tuple<Tensor&, Tensor&> median_dim_values(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                               Tensor& indices) {
  return median_along(self, dim, keepdim, values, indices, Place::Median);
}

std::tuple<Tensor&, Tensor&> nanmedian_dim_values(const Tensor& self, int64_t dim, bool keepdim, Tensor& values,
                                                  Tensor& indices) {
  return median_along(self, dim, keepdim, values, indices, Place::NanMedian);
}

}  // namespace mybackend::aten
