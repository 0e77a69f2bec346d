// sort, topk, searchsorted, bucketize, isin. Kernels work on contiguous rows: other layouts go through temporaries.
#include <ATen/native/BucketizationUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/Sorting.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/result_type.h>
#include <c10/core/WrapDimMinimal.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/sort.h"
#include "csrc/runtime/stream.h"
#include "generated/sort.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorBase;
using Kernel = decltype(kernels::sort_rows);

const char* bytes(const Tensor& t) {
  return static_cast<const char*>(t.const_data_ptr());
}

device::Stream stream_of(const Tensor& t) {
  return runtime::current_stream(t.device().index());
}

// The tensor with `dim` last; 0-dim tensors are rows of one.
Tensor with_last(const Tensor& t, int64_t dim) {
  return t.dim() == 0 ? t.unsqueeze(0) : t.movedim(dim, -1);
}

void by_rows(const Kernel& kernel, const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim,
             int64_t keep, bool descending, bool sorted) {
  if (values.numel() == 0) return;
  const Tensor in = with_last(self, dim).contiguous();
  const int64_t columns = in.size(-1);
  TORCH_CHECK(columns <= std::numeric_limits<uint32_t>::max(),
              "mybackend: sorting more than 2^32 - 1 elements along a dimension is not supported");
  Tensor to_values = with_last(values, dim), to_indices = with_last(indices, dim);
  const bool aliased = in.is_alias_of(values);
  const Tensor row_values = to_values.is_contiguous() && !aliased
                                ? to_values
                                : empty_on_current_device(to_values.sizes(), values.scalar_type());
  const Tensor row_indices =
      to_indices.is_contiguous() ? to_indices : empty_on_current_device(to_indices.sizes(), at::kLong);
  const int64_t rows = in.numel() / columns;
  const Tensor scratch = empty_on_current_device({kernels::sort_scratch_bytes(rows, columns)}, at::kByte);
  kernel(stream_of(self), {.in = bytes(in),
                           .dtype = to_dtype(self.scalar_type()),
                           .rows = rows,
                           .columns = columns,
                           .descending = descending,
                           .values = static_cast<char*>(row_values.mutable_data_ptr()),
                           .indices = row_indices.mutable_data_ptr<int64_t>(),
                           .keep = keep,
                           .sorted = sorted,
                           .scratch = static_cast<char*>(scratch.mutable_data_ptr())});
  if (!row_values.is_same(to_values)) to_values.copy_(row_values);
  if (!row_indices.is_same(to_indices)) to_indices.copy_(row_indices);
}

void sort_stub_(const TensorBase& self, const TensorBase& values, const TensorBase& indices, int64_t dim,
                bool descending, bool /*stable*/) {
  const Tensor in(self);
  by_rows(kernels::sort_rows, in, Tensor(values), Tensor(indices), dim, in.dim() == 0 ? 1 : in.size(dim), descending,
          true);
}

void isin_stub_(const Tensor& elements, const Tensor& tests, bool invert, const Tensor& out) {
  const auto dtype = at::result_type(elements, tests);
  const Tensor a = elements.to(dtype).contiguous(), b = tests.to(dtype).contiguous();
  if (a.numel() == 0) return;
  const Tensor answer = out.is_contiguous() ? out : empty_on_current_device(out.sizes(), at::kBool);
  kernels::is_in(stream_of(out), bytes(a), bytes(b), to_dtype(dtype), a.numel(), b.numel(), invert,
                 answer.mutable_data_ptr<bool>());
  if (!answer.is_same(out)) out.copy_(answer);
}

}  // namespace

MB_IMPL_FUNC(topk_values)
(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const Tensor& values, const Tensor& indices) {
  by_rows(kernels::topk_rows, self, values, indices, c10::maybe_wrap_dim(dim, self.dim()), k, largest, sorted);
}

Tensor& searchsorted_Tensor_out(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                                std::optional<std::string_view> side, const std::optional<Tensor>& sorter,
                                Tensor& out) {
  const Tensor order = sorter.value_or(Tensor());
  at::native::searchsorted_pre_check(sorted_sequence, self, out, out_int32, right, side, order);
  at::native::resize_output(out, self.sizes());
  if (self.numel() == 0) return out;
  Tensor values = self, boundaries = sorted_sequence, by = order;
  Tensor trimmed_values, trimmed_boundaries, trimmed_order;
  at::native::searchsorted_maybe_trim_input_tensors(trimmed_values, trimmed_boundaries, trimmed_order, values,
                                                    boundaries, by.defined() ? by : boundaries);
  if (trimmed_values.defined()) values = trimmed_values;
  if (trimmed_boundaries.defined()) boundaries = trimmed_boundaries;
  if (by.defined()) by = by.contiguous();
  const Tensor answer = out.is_contiguous() ? out : empty_on_current_device(out.sizes(), out.scalar_type());
  kernels::search_sorted(stream_of(out), {.boundaries = bytes(boundaries),
                                          .sorter = by.defined() ? by.const_data_ptr<int64_t>() : nullptr,
                                          .columns = boundaries.size(-1),
                                          .shared = boundaries.dim() == 1,
                                          .values = bytes(values),
                                          .dtype = to_dtype(boundaries.scalar_type()),
                                          .numel = values.numel(),
                                          .per_row = values.dim() == 0 ? 1 : std::max<int64_t>(1, values.size(-1)),
                                          .right = side ? *side == "right" : right,
                                          .out = static_cast<char*>(answer.mutable_data_ptr()),
                                          .narrow = out_int32});
  if (!answer.is_same(out)) out.copy_(answer);
  return out;
}

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  Tensor out = empty_on_current_device({0}, out_int32 ? at::kInt : at::kLong);
  return searchsorted_Tensor_out(sorted_sequence, self, out_int32, right, side, sorter, out);
}

Tensor& searchsorted_Scalar_out(const Tensor& sorted_sequence, const at::Scalar& self, bool out_int32, bool right,
                                std::optional<std::string_view> side, const std::optional<Tensor>& sorter,
                                Tensor& out) {
  const Tensor value = at::native::searchsorted_scalar_tensor(self, sorted_sequence.device());
  return searchsorted_Tensor_out(sorted_sequence, value, out_int32, right, side, sorter, out);
}

Tensor searchsorted_Scalar(const Tensor& sorted_sequence, const at::Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const std::optional<Tensor>& sorter) {
  const Tensor value = at::native::searchsorted_scalar_tensor(self, sorted_sequence.device());
  return searchsorted_Tensor(sorted_sequence, value, out_int32, right, side, sorter);
}

Tensor& bucketize_Tensor_out(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right, Tensor& out) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
  return searchsorted_Tensor_out(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}

Tensor bucketize_Tensor(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  Tensor out = empty_on_current_device({0}, out_int32 ? at::kInt : at::kLong);
  return bucketize_Tensor_out(self, boundaries, out_int32, right, out);
}

Tensor bucketize_Scalar(const at::Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return bucketize_Tensor(at::native::searchsorted_scalar_tensor(self, boundaries.device()), boundaries, out_int32,
                          right);
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(sort_stub, &mybackend::aten::sort_stub_)
REGISTER_PRIVATEUSE1_DISPATCH(isin_default_stub, &mybackend::aten::isin_stub_)
}  // namespace at::native
