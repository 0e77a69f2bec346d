#include "csrc/aten/set_data.h"

#include <torch/csrc/autograd/variable.h>

namespace mybackend::aten {
namespace {

bool plain(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && (tensor.device().is_cpu() || tensor.device().is_privateuseone()) &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch();
}

}  // namespace

void set_data(const at::Tensor& self, const at::Tensor& data) {
  TORCH_CHECK(plain(self) && plain(data), "set_data: expected strided tensors of the CPU or of mybackend, but got ",
              self.toString(), " on ", self.device(), " and ", data.toString(), " on ", data.device());
  if (auto* meta = torch::autograd::impl::get_autograd_meta(self)) {
    // The accumulator of gradients remembers device and dtype; a later backward makes a new one.
    std::lock_guard<std::mutex> lock(meta->mutex_);
    meta->grad_accumulator_.reset();
  }
  self.unsafeGetTensorImpl()->shallow_copy_from(data.getIntrusivePtr());
}

}  // namespace mybackend::aten
