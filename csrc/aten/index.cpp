// index, index_put_, index_fill_, index_copy, take and put_: stubs of upstream's code, which has expanded masks,
// broadcast the indices and built the iterator. Indices count from the end where negative, except in index_copy.
#include <ATen/ExpandUtils.h>
#include <ATen/native/IndexKernel.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/native/TensorIterator.h>

#include "csrc/aten/index_operands.h"
#include "csrc/aten/iterator.h"

namespace mybackend::aten {
namespace {

using at::TensorBase;
using at::TensorIterator;
using at::TensorIteratorBase;
using kernels::Update;

// The iterator's dimensions, with operand `to` (-1: none), `from` and the index arrays from `first_index` on.
void add_dimensions(IndexSpace& space, const TensorIteratorBase& iter, int to, int from, int first_index) {
  for (int d = 0; d < iter.ndim(); d++) {
    IndexDimension dimension{.size = iter.shape()[d]};
    if (to >= 0) dimension.to = iter.strides(to)[d];
    if (from >= 0) dimension.from = iter.strides(from)[d];
    for (int k = 0; k < space.operands().count; k++) {
      dimension.index[k] = iter.strides(first_index + k)[d];
      dimension.fiber = dimension.fiber && dimension.index[k] == 0;
    }
    space.add(dimension);
  }
  if (to >= 0) space.operands().to = static_cast<char*>(iter.data_ptr(to));
  if (from >= 0) space.operands().from = static_cast<const char*>(iter.data_ptr(from));
}

IndexSpace space_of(const TensorIteratorBase& iter, int to, int from, at::IntArrayRef sizes, at::IntArrayRef strides) {
  IndexSpace space(iter.dtype(0), iter.ntensors() - 2);
  TORCH_INTERNAL_ASSERT(sizes.size() == static_cast<size_t>(space.operands().count) && strides.size() == sizes.size());
  for (int k = 0; k < space.operands().count; k++) space.set_index(k, iter.tensor_base(2 + k), sizes[k], strides[k]);
  for (int k = 0; k < space.operands().count; k++)
    space.operands().index[k] = static_cast<const char*>(iter.data_ptr(2 + k));
  space.operands().wrap = true;
  space.report_as(device::kIndexOutOfRange, 0, iter.device(0));
  add_dimensions(space, iter, to, from, 2);
  return space;
}

void index(TensorIteratorBase& iter, at::IntArrayRef sizes, at::IntArrayRef strides) {
  space_of(iter, 0, 1, sizes, strides).gather(iter.device(0));
}

void index_put(TensorIterator& iter, at::IntArrayRef sizes, at::IntArrayRef strides, bool accumulate) {
  IndexSpace space = space_of(iter, 0, 1, sizes, strides);
  space.operands().shuffled = !accumulate && !at::globalContext().deterministicAlgorithms();
  space.scatter(iter.device(0), accumulate ? Update::Add : Update::Assign);
}

// What upstream calls instead of index_put_stub, with nothing expanded yet, where colliding elements are to be combined
// in order (accumulate, or deterministic algorithms). Here index_put_ always combines them in order.
void index_put_in_order(at::Tensor& self, const c10::List<std::optional<at::Tensor>>& indices, const at::Tensor& value,
                        bool accumulate, bool /*unsafe*/) {
  TORCH_CHECK(indices.size() <= static_cast<size_t>(self.dim()), "too many indices for tensor of dimension ",
              self.dim(), " (got ", indices.size(), ")");
  at::native::checkIndexTensorTypes(indices, /*allow_int=*/true);
  at::Tensor to = self;
  std::vector<at::Tensor> expanded = at::native::expandTensors(self, indices, /*ensure_same_device=*/true);
  try {
    expanded = at::expand_outplace(expanded);
  } catch (const std::exception&) {
    TORCH_CHECK_INDEX(false, "shape mismatch: indexing tensors could not be broadcast together with shapes ",
                      at::native::shapes_as_str(expanded));
  }
  expanded.resize(static_cast<size_t>(self.dim()));
  if (!at::native::hasContiguousSubspace(expanded))
    std::tie(to, expanded) = at::native::transposeToFront(self, expanded);

  // The indexed dimensions lie together: what is assigned has the indices' shape in their place.
  std::vector<at::Tensor> index;
  int64_t before = 0;
  while (before < to.dim() && !expanded[before].defined()) before++;
  for (int64_t d = before; d < to.dim() && expanded[d].defined(); d++)
    index.push_back(expanded[d].scalar_type() == at::kLong ? expanded[d] : expanded[d].to(at::kLong));
  const auto count = static_cast<int64_t>(index.size());
  const at::IntArrayRef index_sizes = count > 0 ? index[0].sizes() : at::IntArrayRef();
  c10::DimVector shape(to.sizes().slice(0, before));
  shape.append(index_sizes.begin(), index_sizes.end());
  shape.append(to.sizes().begin() + before + count, to.sizes().end());
  TORCH_CHECK(at::is_expandable_to(value.sizes(), shape), "shape mismatch: value tensor of shape ", value.sizes(),
              " cannot be broadcast to indexing result of shape ", at::IntArrayRef(shape));
  TORCH_CHECK(value.scalar_type() == self.scalar_type(),
              "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
              " for the destination and ", value.scalar_type(), " for the source.");
  const at::Tensor from = value.expand(shape);
  if (from.numel() == 0) return;

  const int64_t size = self.element_size(), index_dims = static_cast<int64_t>(index_sizes.size());
  IndexSpace space(self.scalar_type(), static_cast<int>(count));
  for (int64_t d = from.dim() - 1; d >= 0; d--) {
    IndexDimension dimension{.size = shape[d], .from = from.stride(d) * size};
    const int64_t r = d - before;
    if (r >= 0 && r < index_dims) {
      dimension.fiber = false;
      for (int64_t k = 0; k < count; k++) dimension.index[k] = index[k].stride(r) * int64_t(sizeof(int64_t));
    } else {
      dimension.to = to.stride(r < 0 ? d : d - index_dims + count) * size;
    }
    space.add(dimension);
  }
  for (int64_t k = 0; k < count; k++)
    space.set_index(static_cast<int>(k), index[k], to.size(before + k), to.stride(before + k) * size);
  space.operands().wrap = true;
  space.report_as(device::kIndexOutOfRange, 0, self.device());
  space.operands().to = static_cast<char*>(to.mutable_data_ptr());
  space.operands().from = static_cast<const char*>(from.const_data_ptr());
  space.scatter(self.device(), accumulate ? Update::Add : Update::Assign);
}

void index_fill(TensorIterator& iter, int64_t dim, int64_t size, int64_t stride, const c10::Scalar& value) {
  IndexSpace space(iter.dtype(0), 1);
  space.set_index(0, iter.tensor_base(1), size, stride * iter.element_size(0));
  space.operands().index[0] = static_cast<const char*>(iter.data_ptr(1));
  space.operands().wrap = true;
  space.report_as(device::kIndexOutOfRange, dim, iter.device(0));
  add_dimensions(space, iter, 0, -1, 1);
  put_scalar(space.operands().immediate, value, iter.dtype(0));
  space.operands().shuffled = true;
  space.scatter(iter.device(0), Update::Assign);
}

void index_copy(TensorIterator& iter, int64_t dim, int64_t size, int64_t stride) {
  IndexSpace space(iter.dtype(0), 1);
  space.set_index(0, iter.tensor_base(1), size, stride * iter.element_size(0));
  space.operands().index[0] = static_cast<const char*>(iter.data_ptr(1));
  space.report_as(device::kIndexCopyOutOfRange, dim, iter.device(0));
  add_dimensions(space, iter, 0, 2, 1);
  space.scatter(iter.device(0), Update::Assign);
}

void take(TensorIterator& iter, const TensorBase& input) {
  const at::Tensor flat = at::Tensor(input).contiguous();
  IndexSpace space(iter.dtype(0), 1);
  space.set_index(0, iter.tensor_base(1), flat.numel(), flat.element_size());
  space.operands().index[0] = static_cast<const char*>(iter.data_ptr(1));
  space.operands().wrap = true;
  space.report_as(device::kTakeIndexOutOfRange, 0, iter.device(0));
  add_dimensions(space, iter, 0, -1, 1);
  space.operands().from = static_cast<const char*>(flat.const_data_ptr());
  space.gather(iter.device(0));
}

void put(TensorIterator& iter, const TensorBase& self, const bool accumulate) {
  const at::Tensor given(self), flat = given.contiguous();
  IndexSpace space(iter.dtype(0), 1);
  space.set_index(0, iter.tensor_base(1), flat.numel(), flat.element_size());
  space.operands().index[0] = static_cast<const char*>(iter.data_ptr(1));
  space.operands().wrap = true;
  space.report_as(device::kTakeIndexOutOfRange, 0, iter.device(0));
  add_dimensions(space, iter, -1, 0, 1);
  space.operands().to = static_cast<char*>(flat.mutable_data_ptr());
  space.scatter(iter.device(0), accumulate ? Update::Add : Update::Assign);
  if (!flat.is_same(given)) given.copy_(flat);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(index_stub, &mybackend::aten::index)
REGISTER_PRIVATEUSE1_DISPATCH(index_put_stub, &mybackend::aten::index_put)
REGISTER_PRIVATEUSE1_DISPATCH(index_put_with_sort_stub, &mybackend::aten::index_put_in_order)
REGISTER_PRIVATEUSE1_DISPATCH(index_fill_stub, &mybackend::aten::index_fill)
REGISTER_PRIVATEUSE1_DISPATCH(index_copy_stub, &mybackend::aten::index_copy)
REGISTER_PRIVATEUSE1_DISPATCH(take_stub, &mybackend::aten::take)
REGISTER_PRIVATEUSE1_DISPATCH(put_stub, &mybackend::aten::put)
}  // namespace at::native
