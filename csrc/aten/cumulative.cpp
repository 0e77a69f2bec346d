// cumsum, cumprod, logcumsumexp, cummax and cummin: one Scan along a dimension each.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty_like.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/reduction.h"
#include "csrc/kernels/cumulative.h"
#include "generated/cumulative.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// `self` along `dim`; outputs have its shape.
Scan scan_over(const Tensor& self, int64_t dim, const Tensor& out0, const Tensor& out1 = {}) {
  TORCH_CHECK(self.dim() <= kMaxDims, "mybackend: a cumulative operation over ", self.dim(),
              " dimensions is not supported (at most ", kMaxDims, ")");
  const Tensor* outputs[2] = {&out0, &out1};
  Scan s;
  s.in_dtype = to_dtype(self.scalar_type());
  s.in = static_cast<const char*>(self.const_data_ptr());
  s.n = self.size(dim);
  s.lines = s.n == 0 ? 0 : self.numel() / s.n;
  s.in_stride = self.stride(dim) * self.element_size();
  s.kept = 0;
  for (int k = 0; k < 2; k++) {
    const bool given = outputs[k]->defined();
    s.out_dtype[k] = given ? to_dtype(outputs[k]->scalar_type()) : s.in_dtype;
    s.out[k] = given ? static_cast<char*>(outputs[k]->data_ptr()) : nullptr;
    s.out_stride[k] = given ? outputs[k]->stride(dim) * outputs[k]->element_size() : 0;
  }
  for (int64_t d = self.dim() - 1; d >= 0; d--) {
    if (d == dim || self.size(d) == 1) continue;
    const int64_t stride = self.stride(d) * self.element_size();
    int64_t out_stride[2];
    for (int k = 0; k < 2; k++)
      out_stride[k] = outputs[k]->defined() ? outputs[k]->stride(d) * outputs[k]->element_size() : 0;
    if (s.kept > 0) {
      const int last = s.kept - 1;
      const int64_t size = s.kept_size[last];
      if (stride == s.kept_stride[last] * size && out_stride[0] == s.kept_out_stride[0][last] * size &&
          out_stride[1] == s.kept_out_stride[1][last] * size) {
        s.kept_size[last] *= self.size(d);
        continue;
      }
    }
    s.kept_size[s.kept] = self.size(d);
    s.kept_stride[s.kept] = stride;
    for (int k = 0; k < 2; k++) s.kept_out_stride[k][s.kept] = out_stride[k];
    s.kept++;
  }
  return s;
}

template <auto& kernel>
void run(const Tensor& self, int64_t dim, const Tensor& out0, const Tensor& out1 = {}) {
  DeviceWorkspace workspace;
  kernel(runtime::current_stream(self.device().index()), scan_over(self, dim, out0, out1), workspace);
}

void cumsum(const Tensor& result, const Tensor& self, int64_t dim) {
  run<kernels::cumulative_sum>(self, dim, result);
}

void cumprod(const Tensor& result, const Tensor& self, int64_t dim) {
  run<kernels::cumulative_prod>(self, dim, result);
}

}  // namespace

Tensor& _logcumsumexp_out(const Tensor& self, int64_t dim_given, Tensor& out) {
  const int64_t dim = at::maybe_wrap_dim(dim_given, self.dim());
  at::native::resize_output(out, self.sizes());
  if (self.dim() == 0) return out.copy_(self);
  if (self.numel() == 0) return out;
  run<kernels::cumulative_logsumexp>(self, dim, out);
  return out;
}

Tensor _logcumsumexp(const Tensor& self, int64_t dim) {
  Tensor result = at::empty_like(self, at::MemoryFormat::Contiguous);
  return _logcumsumexp_out(self, dim, result);
}

void _cummax_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  run<kernels::cumulative_max>(self, dim, values, indices);
}

void _cummin_helper(const Tensor& self, Tensor& values, Tensor& indices, int64_t dim) {
  run<kernels::cumulative_min>(self, dim, values, indices);
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(cumsum_stub, &mybackend::aten::cumsum)
REGISTER_PRIVATEUSE1_DISPATCH(cumprod_stub, &mybackend::aten::cumprod)
}  // namespace at::native
