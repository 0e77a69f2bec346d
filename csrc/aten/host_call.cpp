#include "csrc/aten/host_call.h"

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstring>
#include <deque>

#include "csrc/aten/factories.h"
#include "csrc/device/api.h"
#include "csrc/runtime/allocator.h"

namespace mybackend::aten {

bool on_host_driver() {
  static const bool host = std::strcmp(device::api().name, "host") == 0;
  return host;
}

namespace detail {
namespace {

const c10::Device kCpu(c10::DeviceType::CPU);

at::Tensor new_alias() {
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 0,
                                                       c10::DataPtr(nullptr, kCpu), nullptr, /*resizable=*/false);
  return at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                  caffe2::TypeMeta::Make<float>());
}

// Makes `alias` describe the memory of `tensor`. The alias begins at the tensor's first element.
void point(const at::Tensor& alias, const at::Tensor& tensor) {
  c10::TensorImpl* to = alias.unsafeGetTensorImpl();
  c10::TensorImpl* from = tensor.unsafeGetTensorImpl();
  c10::StorageImpl* storage = to->unsafe_storage().unsafeGetStorageImpl();
  void* data = from->mutable_data();
  storage->set_data_ptr_noswap(c10::DataPtr(data, kCpu));
  const size_t before = static_cast<size_t>(from->storage_offset()) * from->itemsize();
  const size_t bytes = from->unsafe_storage().nbytes();
  storage->set_nbytes(bytes > before ? bytes - before : 0);
  if (to->dtype() != from->dtype()) to->set_storage_and_dtype(to->unsafe_storage(), from->dtype());
  to->set_sizes_and_strides(from->sizes(), from->strides());
  if (to->key_set().has(c10::DispatchKey::Conjugate) != tensor.is_conj()) to->_set_conj(tensor.is_conj());
  if (to->key_set().has(c10::DispatchKey::Negative) != tensor.is_neg()) to->_set_neg(tensor.is_neg());
}

}  // namespace

at::Tensor alias_on_host(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  at::Tensor alias = new_alias();
  point(alias, tensor);
  return alias;
}

struct AliasScope::Pool {
  std::deque<at::Tensor> tensors;  // grows to the most that were in use at once; addresses are stable
  size_t used = 0;
};

static AliasScope::Pool& pool_of_thread() {
  static thread_local AliasScope::Pool pool;
  return pool;
}

AliasScope::AliasScope() noexcept : pool_(pool_of_thread()), begin_(pool_.used) {}

AliasScope::~AliasScope() {
  pool_.used = begin_;
}

const at::Tensor& AliasScope::alias(const at::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  if (pool_.used == pool_.tensors.size()) pool_.tensors.emplace_back();
  at::Tensor& alias = pool_.tensors[pool_.used++];
  // What an operator has kept, or made a view of, stays its own.
  const bool free = alias.defined() && alias.use_count() == 1 && alias.storage().use_count() == 1;
  if (!free) [[unlikely]]
    alias = new_alias();
  point(alias, tensor);
  return alias;
}

at::Tensor to_host(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.to(kCpu) : tensor;
}

void from_host(const at::Tensor& tensor, const at::Tensor& on_host) {
  if (tensor.defined()) tensor.copy_(on_host);
}

}  // namespace detail

at::Tensor adopted(at::Tensor result) {
  if (!result.defined()) return result;
  const c10::DeviceIndex device = runtime::current_device();
  c10::StorageImpl* storage = result.storage().unsafeGetStorageImpl();
  const bool sole = result.use_count() == 1 && result.storage().use_count() == 1;
  if (sole && result.storage_offset() == 0 && !result.is_conj() && !result.is_neg()) {
    const size_t bytes = storage->nbytes();
    c10::DataPtr memory = storage->set_data_ptr(c10::DataPtr(nullptr, detail::kCpu));
    if (c10::DataPtr owned = runtime::allocator().adopt(memory, bytes, device)) {
      auto moved = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, std::move(owned),
                                                         &runtime::allocator(), /*resizable=*/true);
      at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
          std::move(moved), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), result.dtype());
      tensor.unsafeGetTensorImpl()->set_sizes_and_strides(result.sizes(), result.strides());
      return tensor;
    }
    storage->set_data_ptr_noswap(std::move(memory));
  }
  at::Tensor tensor = empty_strided_on_current_device(result.sizes(), result.strides(), result.scalar_type());
  host_call(device, [result](const at::Tensor& tensor) { tensor.copy_(result); }, Output{tensor});
  return tensor;
}

}  // namespace mybackend::aten
