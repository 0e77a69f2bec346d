// tril, triu and the indices of triangles.
#include <ATen/TensorIterator.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/empty.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/rearrange.h"
#include "csrc/runtime/stream.h"
#include "generated/rearrange.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// Not through TensorIterator: the kernel tells rows from columns, so dimensions must not be reordered.
void triangle(const Tensor& self, const Tensor& result, bool upper, int64_t diagonal) {
  if (self.numel() == 0) return;
  TORCH_CHECK(self.dim() <= kMaxDims, "mybackend: tril and triu over more than ", kMaxDims,
              " dimensions are not supported");
  Operands<2> o;
  o.numel = self.numel();
  o.ndim = static_cast<int>(self.dim());
  o.compute = o.dtype[0] = o.dtype[1] = to_dtype(self.scalar_type());
  o.data[0] = static_cast<char*>(result.mutable_data_ptr());
  o.data[1] = const_cast<char*>(static_cast<const char*>(self.const_data_ptr()));
  for (int d = 0; d < o.ndim; d++) {
    const int64_t from_outside = o.ndim - 1 - d;
    o.sizes[d] = self.size(from_outside);
    o.strides[0][d] = result.stride(from_outside) * result.element_size();
    o.strides[1][d] = self.stride(from_outside) * self.element_size();
  }
  kernels::triangle(runtime::current_stream(self.device().index()), o, upper, diagonal);
}

}  // namespace

MB_IMPL_FUNC(tril_out)(const Tensor& self, int64_t diagonal, const Tensor& result) {
  triangle(self, result, false, diagonal);
}

MB_IMPL_FUNC(triu_out)(const Tensor& self, int64_t diagonal, const Tensor& result) {
  triangle(self, result, true, diagonal);
}

}  // namespace mybackend::aten
