// Memory for new tensors of this device. The caller has set the device.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace mybackend::aten {

at::Tensor empty_on_current_device(at::IntArrayRef sizes, at::ScalarType dtype,
                                   std::optional<at::MemoryFormat> format = std::nullopt);
at::Tensor empty_strided_on_current_device(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType dtype);

}  // namespace mybackend::aten
