#include "csrc/aten/index_operands.h"

#include <ATen/Dispatch_v2.h>
#include <ATen/native/NonEmptyUtils.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/device/api.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {
namespace {

// With one thread a block the walks in order are also the fast ones.
bool prefers_atomics() {
  static const bool gpu = std::strcmp(device::api().name, "host") != 0;
  return gpu && !at::globalContext().deterministicAlgorithms();
}

bool mergeable(const IndexDimension& inner, const IndexDimension& outer, int count) {
  if (inner.fiber != outer.fiber) return false;
  bool dense = outer.to == inner.size * inner.to && outer.from == inner.size * inner.from;
  for (int k = 0; k < count; k++) dense = dense && outer.index[k] == inner.size * inner.index[k];
  return dense;
}

}  // namespace

IndexSpace::IndexSpace(at::ScalarType dtype, int index_arrays) {
  TORCH_CHECK(index_arrays <= kernels::kMaxIndices, "mybackend: indexing with more than ", kernels::kMaxIndices,
              " index tensors at once is not supported (got ", index_arrays, ")");
  o_.count = index_arrays;
  o_.dtype = to_dtype(dtype);
  o_.wrap = o_.narrow = o_.shuffled = false;
  o_.to = nullptr;
  o_.from = nullptr;
  o_.dimension = 0;
  o_.code = device::kIndexOutOfRange;
}

void IndexSpace::set_index(int k, const at::TensorBase& index, int64_t indexed_size, int64_t indexed_stride) {
  o_.index[k] = static_cast<const char*>(index.const_data_ptr());
  o_.narrow = index.scalar_type() == at::kInt;
  o_.indexed_sizes[k] = indexed_size;
  o_.indexed_strides[k] = indexed_stride;
}

void IndexSpace::report_as(device::ErrorCode code, int64_t dimension, at::Device device) {
  o_.code = code;
  o_.dimension = dimension;
  o_.errors = runtime::error_record(device.index());
}

void IndexSpace::finish(bool fibers_first) {
  if (fibers_first)
    std::stable_partition(dimensions_.begin(), dimensions_.end(), [](const IndexDimension& d) { return d.fiber; });
  c10::SmallVector<IndexDimension, 8> merged;
  for (const IndexDimension& d : dimensions_) {
    if (d.size == 1) continue;
    if (!merged.empty() && mergeable(merged.back(), d, o_.count))
      merged.back().size *= d.size;
    else
      merged.push_back(d);
  }
  if (merged.empty()) merged.push_back({.size = 1});
  TORCH_CHECK(merged.size() <= kMaxDims, "mybackend: indexing over more than ", kMaxDims,
              " dimensions is not supported");
  o_.ndim = static_cast<int>(merged.size());
  o_.fiber_dims = 0;
  o_.numel = 1;
  for (int d = 0; d < o_.ndim; d++) {
    o_.sizes[d] = merged[d].size;
    o_.to_strides[d] = merged[d].to;
    o_.from_strides[d] = merged[d].from;
    for (int k = 0; k < o_.count; k++) o_.index_strides[k][d] = merged[d].index[k];
    o_.fiber_dims += merged[d].fiber ? 1 : 0;
    o_.numel *= merged[d].size;
  }
}

void IndexSpace::gather(at::Device device) {
  finish(false);
  if (o_.numel == 0) return;
  kernels::gather_elements(runtime::current_stream(device.index()), o_);
  runtime::check_device_errors(device.index());
}

// Replaces the index arrays by one of byte offsets over the dimensions that are no fibers.
at::Tensor IndexSpace::combine_indices(at::Device device) {
  int64_t positions = 1;
  for (const IndexDimension& d : dimensions_) positions *= d.fiber ? 1 : d.size;
  at::Tensor offsets = empty_on_current_device({positions}, at::kLong);
  IndexSpace only_indices = *this;
  only_indices.dimensions_.clear();
  int64_t stride = sizeof(int64_t);
  for (IndexDimension& d : dimensions_) {
    if (d.fiber) continue;
    IndexDimension walked = d;
    walked.to = stride;
    walked.from = 0;
    only_indices.add(walked);
    d.index[0] = stride;
    stride *= d.size;
  }
  only_indices.o_.to = static_cast<char*>(offsets.mutable_data_ptr());
  only_indices.finish(false);
  kernels::combine_indices(runtime::current_stream(device.index()), only_indices.o_);
  o_.count = 1;
  o_.wrap = o_.narrow = false;
  set_index(0, offsets, kernels::kNowhere, 1);
  return offsets;
}

void IndexSpace::scatter(at::Device device, kernels::Update update) {
  for (const IndexDimension& d : dimensions_)
    if (d.size == 0) return;
  at::Tensor combined;
  if (o_.count != 1) combined = combine_indices(device);
  finish(true);
  o_.shuffled = o_.shuffled || (update != kernels::Update::Assign && prefers_atomics());
  kernels::scatter_elements(runtime::current_stream(device.index()), o_, update);
  runtime::check_device_errors(device.index());
}

void put_scalar(char* to, const c10::Scalar& value, at::ScalarType dtype) {
  AT_DISPATCH_V2(dtype, "mybackend scalar operand", AT_WRAP([&] {
                   const scalar_t held = value.to<scalar_t>();
                   std::memcpy(to, &held, sizeof(held));
                 }),
                 AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), c10::kHalf,
                 c10::kBFloat16, c10::kComplexHalf, c10::kBool);
}

IndexSpace space_along(const at::Tensor& indexed, int64_t dim, const at::Tensor& index, const at::Tensor* other,
                       bool indexed_is_to) {
  using at::native::ensure_nonempty_size;
  using at::native::ensure_nonempty_stride;
  const int64_t size = indexed.element_size();
  IndexSpace space(indexed.scalar_type(), 1);
  for (int64_t d = std::max<int64_t>(index.dim(), 1) - 1; d >= 0; d--) {
    IndexDimension dimension{.size = ensure_nonempty_size(index, d), .fiber = d != dim};
    const int64_t of_indexed = d == dim ? 0 : ensure_nonempty_stride(indexed, d) * size;
    const int64_t of_other = other == nullptr ? 0 : ensure_nonempty_stride(*other, d) * size;
    dimension.to = indexed_is_to ? of_indexed : of_other;
    dimension.from = indexed_is_to ? of_other : of_indexed;
    dimension.index[0] = ensure_nonempty_stride(index, d) * index.element_size();
    space.add(dimension);
  }
  space.set_index(0, index, ensure_nonempty_size(indexed, dim), ensure_nonempty_stride(indexed, dim) * size);
  space.report_as(device::kGatherIndexOutOfRange, dim, indexed.device());
  auto& o = space.operands();
  char* of_indexed = const_cast<char*>(static_cast<const char*>(indexed.const_data_ptr()));
  char* of_other = other == nullptr ? nullptr : const_cast<char*>(static_cast<const char*>(other->const_data_ptr()));
  o.to = indexed_is_to ? of_indexed : of_other;
  o.from = indexed_is_to ? of_other : of_indexed;
  return space;
}

}  // namespace mybackend::aten
