// Factories: empty and empty_strided; every other factory of ATen fills what these return.
#include "csrc/aten/factories.h"

#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>

#include "csrc/runtime/allocator.h"
#include "generated/factories.h"

namespace mybackend::aten {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

void check_options(std::optional<at::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(c10::layout_or_default(layout) == c10::Layout::Strided,
              "mybackend: only tensors of layout torch.strided can be made, got ", c10::layout_or_default(layout));
  TORCH_CHECK(!c10::pinned_memory_or_default(pin_memory), "Only dense CPU tensors can be pinned");
}

}  // namespace

at::Tensor empty_on_current_device(at::IntArrayRef sizes, at::ScalarType dtype,
                                   std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &runtime::allocator(), kKeys, dtype, format);
}

at::Tensor empty_strided_on_current_device(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype) {
  return at::detail::empty_strided_generic(sizes, strides, &runtime::allocator(), kKeys, dtype);
}

at::Tensor empty_memory_format(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> /*device*/,
                               std::optional<bool> pin_memory, std::optional<at::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  return empty_on_current_device(size, c10::dtype_or_default(dtype), memory_format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout> layout, std::optional<at::Device> /*device*/,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  return empty_strided_on_current_device(size, stride, c10::dtype_or_default(dtype));
}

// Zeros without memory: upstream's formulas make them, and whoever reads them takes the ZeroTensor key's path.
at::Tensor _efficientzerotensor(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                                std::optional<at::Layout> layout, std::optional<at::Device> device,
                                std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  at::native::ZeroTensorAllocator allocator(c10::device_or_default(device));
  return at::detail::empty_generic(size, &allocator, kKeys | c10::DispatchKeySet(c10::DispatchKey::ZeroTensor),
                                   c10::dtype_or_default(dtype), std::nullopt);
}

}  // namespace mybackend::aten
