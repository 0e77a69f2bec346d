// index_select, index_add and index_reduce: whole slices along one dimension.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/ReductionType.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/WrapDimMinimal.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/index_operands.h"
#include "csrc/aten/structured.h"
#include "generated/index.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::native::ReductionType;
using kernels::Update;

// The space of `slices` (index along dim, the rest as in the indexed tensor): index varies along `dim` only.
IndexSpace space_of_slices(const Tensor& indexed, int64_t dim, const Tensor& index, const Tensor& slices,
                           bool indexed_is_to) {
  const int64_t size = indexed.element_size();
  IndexSpace space(indexed.scalar_type(), 1);
  const int64_t stride = index.dim() == 0 ? 1 : index.stride(0);
  if (indexed.dim() == 0) {
    IndexDimension dimension{.size = index.numel(), .fiber = false};
    dimension.index[0] = stride * index.element_size();
    (indexed_is_to ? dimension.from : dimension.to) = slices.dim() == 0 ? 0 : slices.stride(0) * size;
    space.add(dimension);
  }
  for (int64_t d = indexed.dim() - 1; d >= 0; d--) {
    IndexDimension dimension{.size = d == dim ? index.numel() : indexed.size(d), .fiber = d != dim};
    if (d == dim) dimension.index[0] = stride * index.element_size();
    const int64_t of_slices = slices.dim() == 0 ? 0 : slices.stride(d) * size;
    const int64_t of_indexed = d == dim ? 0 : indexed.stride(d) * size;
    dimension.to = indexed_is_to ? of_indexed : of_slices;
    dimension.from = indexed_is_to ? of_slices : of_indexed;
    space.add(dimension);
  }
  space.set_index(0, index, indexed.dim() == 0 ? 1 : indexed.size(dim),
                  indexed.dim() == 0 ? size : indexed.stride(dim) * size);
  space.report_as(device::kIndexOutOfRangeInSelf, dim, indexed.device());
  char* of_indexed = const_cast<char*>(static_cast<const char*>(indexed.const_data_ptr()));
  char* of_slices = const_cast<char*>(static_cast<const char*>(slices.const_data_ptr()));
  space.operands().to = indexed_is_to ? of_indexed : of_slices;
  space.operands().from = indexed_is_to ? of_slices : of_indexed;
  return space;
}

void update_slices(const Tensor& result, int64_t dim, const Tensor& index, const Tensor& source, Update update) {
  const Tensor positions = index.scalar_type() == at::kLong ? index : index.to(at::kLong);
  space_of_slices(result, dim, positions, source, true).scatter(result.device(), update);
}

c10::Scalar neutral(ReductionType reduction, at::ScalarType dtype) {
  switch (reduction) {
    case ReductionType::PROD:
      return 1;
    case ReductionType::MAX:
    case ReductionType::MIN: {
      const bool lowest = reduction == ReductionType::MAX;
      if (c10::isFloatingType(dtype)) return lowest ? -INFINITY : INFINITY;
      int64_t bound = 0;
      AT_DISPATCH_INTEGRAL_TYPES(dtype, "index_reduce_func_exclude_input_init", [&] {
        bound = lowest ? std::numeric_limits<scalar_t>::lowest() : std::numeric_limits<scalar_t>::max();
      });
      return bound;
    }
    default:
      return 0;
  }
}

}  // namespace

Tensor& index_select_out(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
  dim = c10::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(!(self.dim() == 0 && index.numel() != 1), "index_select(): Index to scalar can have only 1 value, got ",
              index.numel(), " value(s)");
  TORCH_CHECK(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
              "index_select(): Expected dtype int32 or int64 for index");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "index_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  c10::DimVector sizes(self.sizes());
  if (self.dim() > 0) sizes[dim] = index.numel();
  at::native::resize_output(out, sizes);
  if (index.numel() > 0 && self.dim() > 1 && self.numel() == 0)
    TORCH_CHECK(self.size(dim) > 0, "index_select(): self indexing axis dim should be positive");
  if (out.numel() == 0) return out;
  space_of_slices(self, dim, index, out, false).gather(out.device());
  return out;
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  Tensor out = empty_on_current_device({0}, self.scalar_type());
  return index_select_out(self, dim, index, out);
}

MB_IMPL_FUNC(index_add_out)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const at::Scalar& alpha,
 const Tensor& result) {
  if (!result.is_same(self)) result.copy_(self);
  if (index.numel() == 0) return;
  const bool one = alpha.equal(1);
  update_slices(result, dim, index, one ? source : at::mul(source, alpha), Update::Add);
}

MB_IMPL_FUNC(index_reduce_out)
(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, c10::string_view reduce, bool include_self,
 const Tensor& result) {
  TORCH_WARN_ONCE("index_reduce() is in beta and the API may change at any time.");
  if (!result.is_same(self)) result.copy_(self);
  if (index.numel() == 0) return;
  const ReductionType reduction = at::native::get_operator_enum(reduce, true);
  if (!include_self) result.index_fill_(dim, index.to(at::kLong), neutral(reduction, self.scalar_type()));
  switch (reduction) {
    case ReductionType::PROD:
      return update_slices(result, dim, index, source, Update::Multiply);
    case ReductionType::MAX:
      return update_slices(result, dim, index, source, Update::Maximum);
    case ReductionType::MIN:
      return update_slices(result, dim, index, source, Update::Minimum);
    default:
      break;
  }
  update_slices(result, dim, index, source, Update::Add);
  Tensor counts = include_self ? at::ones_like(result) : at::zeros_like(result);
  update_slices(counts, dim, index, at::ones_like(source), Update::Add);
  counts.masked_fill_(at::eq(counts, 0), 1);
  if (result.is_floating_point() || result.is_complex())
    result.div_(counts);
  else
    result.div_(counts, "floor");
}

}  // namespace mybackend::aten
