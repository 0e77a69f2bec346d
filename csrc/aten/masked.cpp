// masked_fill_, masked_select, masked_scatter_, nonzero: what a mask chooses, in row-major order.
//
// The size of a result that depends on data is read back from the device once, after the counting kernel.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/index_operands.h"
#include "csrc/aten/iterator.h"
#include "csrc/kernels/compact.h"
#include "csrc/kernels/rearrange.h"
#include "csrc/runtime/stream.h"
#include "generated/index.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

device::Stream stream_of(const Tensor& t) {
  return runtime::current_stream(t.device().index());
}

const char* bytes(const Tensor& t) {
  return static_cast<const char*>(t.const_data_ptr());
}

// Counts before each chunk, and the total at the end.
Tensor count_chunks(const Tensor& contiguous) {
  Tensor counts = empty_on_current_device({kernels::compact_chunks(contiguous.numel()) + 1}, at::kLong);
  kernels::count_nonzero_chunks(stream_of(contiguous), bytes(contiguous), to_dtype(contiguous.scalar_type()),
                                contiguous.numel(), counts.mutable_data_ptr<int64_t>());
  return counts;
}

int64_t total_of(const Tensor& counts) {
  return counts.select(0, counts.size(0) - 1).item<int64_t>();
}

void warn_if_expanded(const Tensor& self) {
  if (at::has_internal_overlap(self) == at::MemOverlap::Yes)
    TORCH_WARN(
        "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before performing this "
        "operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
}

at::TensorIterator iterate_masked(const Tensor& self, const Tensor& mask) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.dtype());
  warn_if_expanded(self);
  at::assert_no_partial_overlap(self, mask);
  return at::TensorIteratorConfig()
      .set_check_mem_overlap(false)
      .check_all_same_dtype(false)
      .resize_outputs(false)
      .add_output(self)
      .add_const_input(self)
      .add_const_input(mask)
      .build();
}

// out(total, ndim) = coordinates of what is not zero, at most `most` rows.
void write_coordinates(const Tensor& self, const Tensor& contiguous, const Tensor& counts, const Tensor& out,
                       int64_t most) {
  const int64_t ndim = out.size(1);
  if (most == 0 || ndim == 0) return;
  const device::Stream stream = stream_of(self);
  const DType dtype = to_dtype(contiguous.scalar_type());
  if (ndim == 1)
    return kernels::write_nonzero(stream, bytes(contiguous), dtype, contiguous.numel(),
                                  counts.const_data_ptr<int64_t>(), out.mutable_data_ptr<int64_t>(), out.stride(0),
                                  most);
  Tensor positions = empty_on_current_device({most}, at::kLong);
  kernels::write_nonzero(stream, bytes(contiguous), dtype, contiguous.numel(), counts.const_data_ptr<int64_t>(),
                         positions.mutable_data_ptr<int64_t>(), 1, most);
  kernels::Coordinates c{positions.const_data_ptr<int64_t>(), most,          static_cast<int>(ndim), {},
                         out.mutable_data_ptr<int64_t>(),     out.stride(0), out.stride(1)};
  for (int64_t d = 0; d < ndim; d++) c.sizes[d] = self.size(d);
  kernels::write_coordinates(stream, c);
}

}  // namespace

Tensor& masked_fill__Scalar(Tensor& self, const Tensor& mask, const at::Scalar& value) {
  const auto iter = iterate_masked(self, mask);
  const Operands<4> o = with_scalar(operands_of<3>(iter), value);
  if (o.numel > 0) kernels::select_by_mask(stream_of(self), o);
  return self;
}

Tensor& masked_fill__Tensor(Tensor& self, const Tensor& mask, const Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
              value.dim(), " dimension(s).");
  return masked_fill__Scalar(self, mask, value.item());
}

Tensor& nonzero_out(const Tensor& self, Tensor& out) {
  TORCH_CHECK(self.dim() <= 64, "nonzero is not supported for tensors with more than 64 dimensions");
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero: Expected out tensor to have scalar type Long but got scalar type ", out.scalar_type());
  TORCH_CHECK(self.device() == out.device(), "expected self and out to be on the same device, but got out on ",
              out.device(), " and self on ", self.device());
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  const Tensor contiguous = self.contiguous();
  const Tensor counts = self.numel() > 0 ? count_chunks(contiguous) : Tensor();
  const int64_t total = counts.defined() ? total_of(counts) : 0;
  // Column after column, as upstream does: indexing takes the columns apart.
  if (at::native::resize_output(out, {total, self.dim()})) out.as_strided_({total, self.dim()}, {1, total});
  write_coordinates(self, contiguous, counts, out, total);
  return out;
}

Tensor nonzero(const Tensor& self) {
  Tensor out = empty_on_current_device({0}, at::kLong);
  return nonzero_out(self, out);
}

Tensor& nonzero_static_out(const Tensor& self, int64_t size, int64_t fill_value, Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  TORCH_CHECK(out.scalar_type() == at::kLong,
              "nonzero_static: Expected out tensor to have scalar type Long but got scalar type ", out.scalar_type());
  at::native::resize_output(out, {size, self.dim()});
  out.fill_(fill_value);
  if (self.numel() == 0 || size == 0) return out;
  const Tensor contiguous = self.contiguous();
  const Tensor counts = count_chunks(contiguous);
  write_coordinates(self, contiguous, counts, out, std::min(size, total_of(counts)));
  return out;
}

Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  Tensor out = empty_on_current_device({size, self.dim()}, at::kLong);
  return nonzero_static_out(self, size, fill_value, out);
}

Tensor& masked_select_out(const Tensor& self, const Tensor& mask, Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(self.scalar_type() == out.scalar_type(),
              "masked_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const auto [mask_, self_] = at::expand_outplace(mask, self);
  const Tensor chosen = mask_->contiguous(), from = self_->contiguous();
  const Tensor counts = chosen.numel() > 0 ? count_chunks(chosen) : Tensor();
  const int64_t total = counts.defined() ? total_of(counts) : 0;
  at::native::resize_output(out, {total});
  if (total > 0)
    kernels::compact_masked(
        stream_of(self), bytes(from), to_dtype(from.scalar_type()), reinterpret_cast<const uint8_t*>(bytes(chosen)),
        chosen.numel(), counts.const_data_ptr<int64_t>(), static_cast<char*>(out.mutable_data_ptr()), out.stride(0));
  return out;
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  Tensor out = empty_on_current_device({0}, self.scalar_type());
  return masked_select_out(self, mask, out);
}

Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(self.scalar_type() == source.scalar_type(),
              "masked_scatter: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
              source.scalar_type());
  const auto mask_ = at::expand_inplace(self, mask, "masked_scatter_");
  TORCH_CHECK(mask_->scalar_type() == at::kBool,
              "masked_scatter_ only supports boolean masks, but got mask with dtype ", mask_->scalar_type());
  if (self.numel() == 0) return self;
  const Tensor chosen = mask_->contiguous(), from = source.contiguous(), to = self.contiguous();
  const Tensor counts = count_chunks(chosen);
  const int64_t total = total_of(counts);
  TORCH_CHECK(total <= from.numel(), "Number of elements of source < number of ones in mask");
  if (total > 0)
    kernels::expand_masked(stream_of(self), static_cast<char*>(to.mutable_data_ptr()), to_dtype(to.scalar_type()),
                           reinterpret_cast<const uint8_t*>(bytes(chosen)), chosen.numel(),
                           counts.const_data_ptr<int64_t>(), bytes(from));
  if (!to.is_same(self)) self.copy_(to);
  return self;
}

}  // namespace mybackend::aten
