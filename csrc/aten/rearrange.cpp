// flip, roll, repeat_interleave, unfold's backward, indices of triangles: copies between the right views.
#include <ATen/native/IndexKernel.h>
#include <ATen/native/Repeat.h>
#include <ATen/native/TensorTransformations.h>
#include <ATen/native/UnfoldBackward.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones.h>
#include <c10/core/WrapDimMinimal.h>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/copy.h"
#include "csrc/kernels/sort.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/stream.h"
#include "generated/rearrange.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// Upstream has given the output negative strides in the flipped dimensions; a third operand told it which they are.
void flip(at::TensorIterator& iter, bool /*quantized*/) {
  if (iter.numel() == 0) return;
  const Operands<3> all = operands_of<3>(iter);
  Operands<2> o;
  o.numel = all.numel;
  o.ndim = all.ndim;
  o.compute = all.compute;
  for (int d = 0; d < o.ndim; d++) o.sizes[d] = all.sizes[d];
  for (int k = 0; k < 2; k++) {
    o.dtype[k] = all.dtype[k];
    o.contiguous[k] = all.contiguous[k];
    o.data[k] = all.data[k];
    for (int d = 0; d < o.ndim; d++) o.strides[k][d] = all.strides[k][d];
  }
  kernels::copy(runtime::current_stream(iter.device(0).index()), o, false, false);
}

template <class Index>
void own_positions(const Index* /*repeats*/, const int64_t* ends, Index* out, int64_t count, int64_t total) {
  kernels::owner_of_positions(runtime::current_stream(runtime::current_device()), ends, count,
                              reinterpret_cast<char*>(out), sizeof(Index) == sizeof(int32_t), total);
}

// Windows that start `step` apart overlap; elements with the same place in their window do not.
void add_windows(Tensor& grad_in, const Tensor& grad, int64_t dim, int64_t size, int64_t step) {
  dim = c10::maybe_wrap_dim(dim, grad_in.dim());
  const int64_t windows = grad.dim() > 1 ? grad.size(dim) : 1;
  for (int64_t k = 0; k < size; k++) {
    Tensor at_k = grad_in.slice(dim, k, k + (windows - 1) * step + 1, step);
    at_k.add_(grad.select(-1, k).view_as(at_k));
  }
}

Tensor triangle_indices(const Tensor& inside, at::ScalarType dtype) {
  return at::nonzero(inside).t().to(dtype);
}

Tensor all_of(int64_t row, int64_t col, std::optional<at::Layout> layout, std::optional<at::Device> device) {
  TORCH_CHECK(row >= 0, "row must be non-negative, got", row);
  TORCH_CHECK(col >= 0, "col must be non-negative, got", col);
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "only support layout=torch.strided, got", *layout);
  return at::ones({row, col}, at::TensorOptions().dtype(at::kBool).device(device));
}

}  // namespace

Tensor roll(const Tensor& self, at::IntArrayRef shifts, at::IntArrayRef dims) {
  if (dims.size() != 1 || shifts.size() != 1) return at::native::roll_common(self, shifts, dims);
  if (self.numel() == 0) return self.clone(at::MemoryFormat::Preserve);
  const int64_t dim = c10::maybe_wrap_dim(dims[0], self.dim()), size = self.size(dim);
  const int64_t shift = (shifts[0] % size + size) % size;
  Tensor out = at::empty_like(self, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  out.narrow(dim, shift, size - shift).copy_(self.narrow(dim, 0, size - shift));
  if (shift > 0) out.narrow(dim, 0, shift).copy_(self.narrow(dim, size - shift, shift));
  return out;
}

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  if (repeats.scalar_type() == at::kInt)
    return at::native::repeat_interleave_common<int32_t, own_positions<int32_t>>(repeats, output_size);
  return at::native::repeat_interleave_common<int64_t, own_positions<int64_t>>(repeats, output_size);
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                    std::optional<bool> /*pin_memory*/) {
  return triangle_indices(all_of(row, col, layout, device).tril(offset), dtype.value_or(at::kLong));
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<at::ScalarType> dtype,
                    std::optional<at::Layout> layout, std::optional<at::Device> device,
                    std::optional<bool> /*pin_memory*/) {
  return triangle_indices(all_of(row, col, layout, device).triu(offset), dtype.value_or(at::kLong));
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(flip_stub, &mybackend::aten::flip)
REGISTER_PRIVATEUSE1_DISPATCH(unfold_backward_stub, &mybackend::aten::add_windows)
}  // namespace at::native
