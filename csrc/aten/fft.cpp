// Fourier transforms: the three transforms that torch.fft is made of, by libtorch's CPU operators (MKL or pocketfft).
#include <ATen/ops/_fft_c2c.h>
#include <ATen/ops/_fft_c2r.h>
#include <ATen/ops/_fft_r2c.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/host_call.h"
#include "csrc/aten/structured.h"
#include "generated/fft.h"

namespace mybackend::aten {
namespace {

using at::IntArrayRef;
using at::Tensor;

// transform(input), contiguous and of the sizes, as a new tensor.
template <class Transform>
Tensor transformed(const Tensor& self, IntArrayRef sizes, at::ScalarType dtype, const Transform& transform) {
  const auto contiguous = [transform](const Tensor& self) { return transform(self).contiguous(); };
  if (auto result = host_call_now(self.get_device(), contiguous, self)) return adopted(std::move(*result));
  Tensor out = empty_on_current_device(sizes, dtype, std::nullopt);
  host_call(
      self.get_device(), [transform](const Tensor& self, const Tensor& out) { out.copy_(transform(self)); }, self,
      Output{out});
  return out;
}

Tensor& store(const Tensor& result, Tensor& out) {
  structured::resize_output(out, result.sizes(), {}, result.options());
  out.copy_(result);
  return out;
}

}  // namespace

Tensor _fft_c2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward) {
  TORCH_CHECK(self.is_complex(), "Expected a complex tensor, but got ", self.scalar_type());
  return transformed(self, self.sizes(), self.scalar_type(),
                     [dim = dim.vec(), normalization, forward](const Tensor& self) {
                       return at::_fft_c2c(self, dim, normalization, forward);
                     });
}

Tensor _fft_r2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  TORCH_CHECK(self.is_floating_point(), "Expected a real tensor, but got ", self.scalar_type());
  c10::DimVector sizes(self.sizes());
  if (onesided && !dim.empty()) sizes[at::maybe_wrap_dim(dim.back(), self.dim())] = self.size(dim.back()) / 2 + 1;
  return transformed(self, sizes, c10::toComplexType(self.scalar_type()),
                     [dim = dim.vec(), normalization, onesided](const Tensor& self) {
                       return at::_fft_r2c(self, dim, normalization, onesided);
                     });
}

Tensor _fft_c2r(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size) {
  TORCH_CHECK(self.is_complex(), "Expected a complex tensor, but got ", self.scalar_type());
  c10::DimVector sizes(self.sizes());
  if (!dim.empty()) sizes[at::maybe_wrap_dim(dim.back(), self.dim())] = last_dim_size;
  return transformed(self, sizes, c10::toRealValueType(self.scalar_type()),
                     [dim = dim.vec(), normalization, last_dim_size](const Tensor& self) {
                       return at::_fft_c2r(self, dim, normalization, last_dim_size);
                     });
}

Tensor& _fft_c2c_out(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward, Tensor& out) {
  return store(mybackend::aten::_fft_c2c(self, dim, normalization, forward), out);
}
Tensor& _fft_r2c_out(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided, Tensor& out) {
  return store(mybackend::aten::_fft_r2c(self, dim, normalization, onesided), out);
}
Tensor& _fft_c2r_out(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size, Tensor& out) {
  return store(mybackend::aten::_fft_c2r(self, dim, normalization, last_dim_size), out);
}

}  // namespace mybackend::aten
