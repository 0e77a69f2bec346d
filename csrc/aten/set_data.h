// set_data: what `tensor.data = other` does, between the host and this device.
#pragma once

#include <ATen/core/Tensor.h>

namespace mybackend::aten {

// Makes `self`, a leaf or a gradient, hold the memory, sizes, dtype and device of `data`; it stays the same object for
// its module, optimizer and views of it in Python. torch's own setter refuses to cross the two device types, because
// its list of dense backends lacks renamed ones. Raises for tensors that are not strided and plain.
void set_data(const at::Tensor& self, const at::Tensor& data);

}  // namespace mybackend::aten
