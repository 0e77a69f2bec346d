// Norms and maxima of every tensor of a list.
#include <ATen/OpMathType.h>
#include <ATen/native/ForeachUtils.h>
#include <ATen/ops/_foreach_max_native.h>
#include <ATen/ops/_foreach_norm_native.h>
#include <ATen/ops/empty.h>

#include <limits>

#include "csrc/aten/foreach.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/foreach.h"
#include "generated/foreach.h"

namespace mybackend::aten {

using at::Tensor;
using at::TensorList;
using lists::kInteger;
using lists::kReal;
using lists::Lists;
using lists::takes_fast_route;

namespace {

std::vector<Tensor> numbers_like(TensorList self, const at::TensorOptions& options) {
  std::vector<Tensor> out;
  out.reserve(self.size());
  for (size_t t = 0; t < self.size(); t++) out.push_back(structured::create_output({}, {}, options));
  return out;
}

// Space for the partial results of tensors of several chunks; undefined when there are none.
Tensor partial_results(TensorList self, c10::ScalarType type) {
  int64_t count = 0;
  for (const Tensor& tensor : self)
    if (tensor.numel() > kernels::kReduceChunk)
      count += (tensor.numel() + kernels::kReduceChunk - 1) / kernels::kReduceChunk;
  return count > 0 ? at::empty({count}, self[0].options().dtype(type)) : Tensor();
}

void* address_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr() : nullptr;
}

std::optional<kernels::Norm> norm_of(const at::Scalar& ord) {
  if (ord.isComplex() || ord.isBoolean()) return std::nullopt;
  const double p = ord.toDouble();
  if (p == 1) return kernels::Norm::L1;
  if (p == 2) return kernels::Norm::L2;
  if (p == std::numeric_limits<double>::infinity()) return kernels::Norm::Inf;
  return std::nullopt;
}

}  // namespace

std::vector<Tensor> _foreach_norm_Scalar(TensorList self, const at::Scalar& ord, std::optional<at::ScalarType> dtype) {
  at::native::check_foreach_api_restrictions(self);
  const auto norm = norm_of(ord);
  const auto type = dtype.value_or(self[0].scalar_type());
  const bool widens =
      at::isFloatingType(type) && !c10::isFloat8Type(type) && c10::promoteTypes(type, self[0].scalar_type()) == type;
  if (!norm || !widens || !takes_fast_route({self}, {}, false, kReal))
    return at::native::foreach_tensor_norm_slow(self, ord, dtype);
  std::vector<Tensor> out = numbers_like(self, self[0].options().dtype(type));
  for (size_t t = 0; t < self.size(); t++)
    if (self[t].numel() == 0) out[t].zero_();
  const Tensor partial = partial_results(self, at::toOpMathType(type));
  kernels::foreach_norm(lists::stream_of(self), Lists({out, self}, 1), *norm, compute_dtype(to_dtype(type)),
                        address_of(partial));
  return out;
}

std::vector<Tensor> _foreach_max(TensorList self) {
  at::native::check_foreach_api_restrictions(self);
  bool empty = false;  // an error
  for (const Tensor& tensor : self) empty = empty || tensor.numel() == 0;
  if (empty || !takes_fast_route({self}, {}, false, kReal | kInteger)) return at::native::foreach_tensor_max_slow(self);
  std::vector<Tensor> out = numbers_like(self, self[0].options());
  const Tensor partial = partial_results(self, at::toOpMathType(self[0].scalar_type()));
  kernels::foreach_max(lists::stream_of(self), Lists({out, self}, 1), address_of(partial));
  return out;
}

}  // namespace mybackend::aten
