// max_unpool2d and max_unpool3d: each value goes where its maximum was; everything else is zero.
#include <ATen/ops/zeros.h>

#include "csrc/aten/structured.h"
#include "generated/unpool.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

Tensor unpool(const Tensor& self, const Tensor& indices, IntArrayRef output_size, int dims) {
  const char* name = dims == 2 ? "max_unpooling2d" : "max_unpooling3d";
  TORCH_CHECK(indices.scalar_type() == at::kLong,
              "elements in indices should be type int64 but got type: ", indices.scalar_type());
  TORCH_CHECK(static_cast<int>(output_size.size()) == dims, "There should be exactly ",
              dims == 2 ? "two elements (height, width)" : "three elements (depth, height, width)",
              " in output_size, but got ", output_size.size(), " elements.");
  TORCH_CHECK(self.dim() == dims + 1 || self.dim() == dims + 2, "Input to ", name, " should be a ", dims + 1, "d or ",
              dims + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  TORCH_CHECK(self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
              self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t i = 1; i < self.dim(); i++)
    TORCH_CHECK(self.size(i) > 0, name, "(): Expected input to have non-zero size for non-batch dimensions, but got ",
                self.sizes(), " with dimension ", i, " being empty.");
  c10::DimVector sizes(self.sizes().begin(), self.sizes().end() - dims);
  sizes.append(output_size.begin(), output_size.end());
  Tensor out = at::zeros(sizes, self.options());
  if (self.numel() != 0)
    out.flatten(-dims).scatter_(-1, indices.contiguous().flatten(-dims), self.contiguous().flatten(-dims));
  return self.dim() == dims + 2 ? out.contiguous(self.suggest_memory_format()) : out;
}

Tensor& store(const Tensor& result, Tensor& out) {
  structured::resize_output(out, result.sizes(), {}, result.options().memory_format(result.suggest_memory_format()));
  out.copy_(result);
  return out;
}

}  // namespace

Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return unpool(self, indices, output_size, 2);
}
Tensor& max_unpool2d_out(const Tensor& self, const Tensor& indices, IntArrayRef output_size, Tensor& out) {
  return store(unpool(self, indices, output_size, 2), out);
}
Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef /*stride*/,
                    IntArrayRef /*padding*/) {
  return unpool(self, indices, output_size, 3);
}
Tensor& max_unpool3d_out(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef /*stride*/,
                         IntArrayRef /*padding*/, Tensor& out) {
  return store(unpool(self, indices, output_size, 3), out);
}

}  // namespace mybackend::aten
