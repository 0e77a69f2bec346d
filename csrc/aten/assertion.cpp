// _assert_async: raises when a one-element tensor is zero, at the operator itself where its work has run already, else
// at the next synchronisation.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/assertion.h"
#include "csrc/runtime/errors.h"
#include "generated/assertion.h"

namespace mybackend::aten {

void _assert_async_msg(const at::Tensor& self, c10::string_view message) {
  TORCH_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  TORCH_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  const at::Tensor scratch = at::empty_like(self);
  const at::TensorIterator iter = at::TensorIteratorConfig().add_output(scratch).add_const_input(self).build();
  const auto device = self.device().index();
  kernels::assert_nonzero(runtime::current_stream(device), operands_of<2>(iter), runtime::error_record(device),
                          runtime::remember_message(std::string(message)));
  runtime::check_device_errors(device);
}

void _assert_async(const at::Tensor& self) {
  _assert_async_msg(self, "Expected Tensor with single nonzero value, but got zero");
}

}  // namespace mybackend::aten
