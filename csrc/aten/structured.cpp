// What the classes of structured.h share: outputs made, resized or checked. Wording of errors is upstream's.
#include "csrc/aten/structured.h"

#include <ATen/native/Resize.h>

#include "csrc/aten/factories.h"

namespace mybackend::aten::structured {

at::Tensor create_output(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  if (strides.empty()) return empty_on_current_device(sizes, dtype, options.memory_format_opt());
  return empty_strided_on_current_device(sizes, strides, dtype);
}

void resize_output(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                   const at::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == out.dtype(), "Expected out tensor to have dtype ", options.dtype(), ", but got ",
              out.dtype(), " instead");
  TORCH_CHECK(options.device() == out.device(), "Expected out tensor to have device ", options.device(), ", but got ",
              out.device(), " instead");
  if (!at::native::resize_output(out, sizes)) return;
  // Strides are advice: only a tensor that was resized takes them.
  if (!strides.empty())
    out.as_strided_(sizes, strides);
  else if (const auto format = options.memory_format_opt())
    out.unsafeGetTensorImpl()->empty_tensor_restride(*format);
}

void check_inplace(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options) {
  TORCH_CHECK(options.dtype() == self.dtype(), "Bad in-place call: input tensor dtype ", self.dtype(),
              " and output tensor dtype ", options.dtype(), " should match");
  TORCH_CHECK(options.device() == self.device(), "Bad in-place call: input tensor device ", self.device(),
              " and output tensor device ", options.device(), " should match");
  TORCH_CHECK(sizes == self.sizes(), "Bad in-place call: input tensor size ", self.sizes(), " and output tensor size ",
              sizes, " should match");
}

at::Tensor create_proxy(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                        const at::TensorOptions& options) {
  if (out.strides() == strides) return {};
  return empty_strided_on_current_device(sizes, strides, c10::typeMetaToScalarType(options.dtype()));
}

}  // namespace mybackend::aten::structured
