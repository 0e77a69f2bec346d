// The operators under every other one: resize_, set_, reading one value, keeping memory for a stream.
#include <ATen/Dispatch_v2.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include "csrc/device/check.h"
#include "csrc/runtime/allocator.h"
#include "csrc/runtime/copy.h"
#include "csrc/runtime/stream.h"
#include "generated/minimal.h"

namespace mybackend::aten {
namespace {

// Grows the storage when it cannot hold the new sizes; it never shrinks.
void resize_storage(c10::TensorImpl* self, size_t bytes) {
  if (self->numel() == 0) return;
  const c10::Storage& storage = self->unsafe_storage();
  TORCH_CHECK(storage, "Tensor: invalid null storage");
  if (bytes > storage.nbytes()) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(storage, bytes);
}

void resize_impl(c10::TensorImpl* self, at::IntArrayRef sizes, at::OptionalIntArrayRef strides) {
  if (self->sizes() == sizes && (!strides || self->strides() == *strides)) return;
  const size_t itemsize = self->dtype().itemsize();
  const auto offset = static_cast<size_t>(self->storage_offset());
  size_t bytes;
  if (strides) {
    self->set_sizes_and_strides(sizes, *strides);
    bytes = at::detail::computeStorageNbytes(sizes, *strides, itemsize, offset);
  } else {
    self->generic_set_sizes_contiguous(sizes);
    bytes = at::detail::computeStorageNbytesContiguous(sizes, itemsize, offset);
  }
  resize_storage(self, bytes);
}

}  // namespace

const at::Tensor& resize_(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> memory_format) {
  resize_impl(self.unsafeGetTensorImpl(), size, std::nullopt);
  if (memory_format) {
    TORCH_CHECK(*memory_format != at::MemoryFormat::Preserve, "Unsupported memory format", *memory_format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  return self;
}

at::Tensor& set_(at::Tensor& self) {
  at::Tensor none = at::empty({0}, self.options());
  return set__source_Storage_storage_offset(self, none.storage(), 0, {0}, {});
}

at::Tensor& set__source_Storage_storage_offset(at::Tensor& self, at::Storage source, int64_t storage_offset,
                                               at::IntArrayRef size, at::IntArrayRef stride) {
  at::native::checkSetStorage(self, std::move(source), storage_offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(storage_offset);
  resize_impl(self.unsafeGetTensorImpl(), size,
              stride.data() != nullptr ? at::OptionalIntArrayRef(stride) : std::nullopt);
  return self;
}

at::Scalar _local_scalar_dense(const at::Tensor& self) {
  const auto device = self.device().index();
  alignas(16) char value[16];
  const c10::DataPtr stack(value, c10::Device(c10::DeviceType::CPU));
  runtime::copy_between_host_and_device(value, self.const_data_ptr(), self.element_size(), /*to_device=*/false, stack,
                                        device, /*non_blocking=*/false);
  const auto dtype = self.scalar_type();
  return AT_DISPATCH_V2(dtype, "_local_scalar_dense", AT_WRAP([&] {
                          scalar_t number;
                          std::memcpy(&number, value, sizeof(number));
                          return at::Scalar(number);
                        }),
                        AT_EXPAND(AT_ALL_TYPES_AND_COMPLEX), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES),
                        AT_EXPAND(AT_FLOAT8_TYPES), c10::kComplexHalf, c10::kHalf, c10::kBool, c10::kBFloat16);
}

void record_stream(at::Tensor& self, at::Stream s) {
  runtime::record_stream(self.storage().data_ptr(), s);
}

at::Tensor _copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  at::native::resize_output(dst, self.sizes());
  return dst.copy_(self);
}

}  // namespace mybackend::aten
