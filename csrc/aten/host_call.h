// host_call(): runs one of libtorch's CPU operators on tensors of this device, in stream order.
//
//   host_call(device, [alpha](const Tensor& a, const Tensor& out) { at::cpu::...(...); }, a, Output{out});
//
// An operator that allocates its result may run at once, if it can, and its result be adopted, which copies nothing:
//
//   if (auto result = host_call_now(device, [](const Tensor& a) { return at::...(a); }, a))
//     return adopted(std::move(*result));
//
// Under the host driver the function sees CPU tensors over the same memory (same sizes, strides, conjugate and negative
// bits), so nothing is copied: at once in the calling thread when the stream is idle (the common case, without any
// allocation), otherwise as work of the stream. Under any other driver the tensors travel to the host and the outputs
// back.
//
// The function is copied when it cannot run at once, and run again at every launch of a graph that recorded it: it owns
// what it captures (DimVector, not IntArrayRef), does not keep its arguments and gives the same result each time.
// Device memory is not held: a block that is freed meanwhile is reused only by later work of its stream. What a
// function throws at once is thrown to the caller; later, it is recorded and raised by the next synchronisation.
// Dispatcher keys above the backend (autograd, autocast, functorch, Python) are excluded while it runs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/device/host_stream.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {

// Marks an argument that the function writes (or reads and writes).
struct Output {
  const at::Tensor& tensor;
};

bool on_host_driver();

namespace detail {

class BackendKeysOnly {
 private:
  c10::impl::ExcludeDispatchKeyGuard guard_{
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset | c10::python_ks |
      c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchVmapMode,
                           c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                           c10::DispatchKey::FuncTorchDynamicLayerBackMode, c10::DispatchKey::Functionalize})};
};

// A CPU tensor over the memory of `tensor`, which it does not own; undefined stays undefined.
at::Tensor alias_on_host(const at::Tensor& tensor);

// The same from a small pool of tensors of the calling thread, for the length of a scope: no allocation.
class AliasScope {
 public:
  AliasScope() noexcept;
  ~AliasScope();
  AliasScope(const AliasScope&) = delete;
  AliasScope& operator=(const AliasScope&) = delete;
  const at::Tensor& alias(const at::Tensor& tensor);

  struct Pool;

 private:
  Pool& pool_;
  size_t begin_;
};

inline const at::Tensor& pooled(AliasScope& scope, const at::Tensor& tensor) {
  return scope.alias(tensor);
}
inline const at::Tensor& pooled(AliasScope& scope, const Output& output) {
  return scope.alias(output.tensor);
}
inline std::optional<at::Tensor> pooled(AliasScope& scope, const std::optional<at::Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return scope.alias(*tensor);
}
inline std::vector<at::Tensor> pooled(AliasScope& scope, const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> aliases;
  for (const at::Tensor& tensor : tensors) aliases.push_back(scope.alias(tensor));
  return aliases;
}

inline at::Tensor owned(const at::Tensor& tensor) {
  return alias_on_host(tensor);
}
inline at::Tensor owned(const Output& output) {
  return alias_on_host(output.tensor);
}
inline std::optional<at::Tensor> owned(const std::optional<at::Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return alias_on_host(*tensor);
}
inline std::vector<at::Tensor> owned(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> aliases;
  for (const at::Tensor& tensor : tensors) aliases.push_back(alias_on_host(tensor));
  return aliases;
}

at::Tensor to_host(const at::Tensor& tensor);
inline at::Tensor brought(const at::Tensor& tensor) {
  return to_host(tensor);
}
inline at::Tensor brought(const Output& output) {
  return to_host(output.tensor);
}
inline std::optional<at::Tensor> brought(const std::optional<at::Tensor>& tensor) {
  if (!tensor.has_value()) return std::nullopt;
  return to_host(*tensor);
}
inline std::vector<at::Tensor> brought(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> on_host;
  for (const at::Tensor& tensor : tensors) on_host.push_back(to_host(tensor));
  return on_host;
}

inline bool on_cpu(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_cpu();
}
inline bool on_cpu(const Output& output) {
  return on_cpu(output.tensor);
}
inline bool on_cpu(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() && on_cpu(*tensor);
}
inline bool on_cpu(const std::vector<at::Tensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) { return on_cpu(tensor); });
}

void from_host(const at::Tensor& tensor, const at::Tensor& on_host);
template <class Argument, class Brought>
void return_output(const Argument& argument, const Brought& brought) {
  if constexpr (std::is_same_v<Argument, Output>) from_host(argument.tensor, brought);
}

}  // namespace detail

// What the function returns; nullopt, and it has not run, unless the host driver's current stream is idle.
template <class F, class... Args>
auto host_call_now(c10::DeviceIndex device, const F& function, const Args&... args) {
  std::optional<decltype(function(detail::owned(args)...))> result;
  if (!on_host_driver()) return result;
  if (device::host::Inline own{device::host::resolve(runtime::current_stream(device), device)}) {
    detail::AliasScope scope;
    detail::BackendKeysOnly keys;
    result = function(detail::pooled(scope, args)...);
  }
  return result;
}

// The CPU tensor `result`, which nobody else holds, as a tensor of the current device: by taking its memory over where
// that can be, else by a copy. Undefined stays undefined.
at::Tensor adopted(at::Tensor result);

// Precondition: `device` is the current device and owns the tensors. A CPU tensor among them, such as the error codes
// that upstream keeps there, is in no stream: then the call waits for the function.
template <class F, class... Args>
void host_call(c10::DeviceIndex device, const F& function, const Args&... args) {
  if (!on_host_driver()) [[unlikely]] {
    std::tuple on_host{detail::brought(args)...};
    {
      detail::BackendKeysOnly keys;
      std::apply(function, on_host);
    }
    std::apply([&](const auto&... brought) { (detail::return_output(args, brought), ...); }, on_host);
    return;
  }
  device::StreamHandle& stream = device::host::resolve(runtime::current_stream(device), device);
  if (device::host::Inline own{stream}) [[likely]] {
    detail::AliasScope scope;
    detail::BackendKeysOnly keys;
    function(detail::pooled(scope, args)...);
    return;
  }
  auto work = device::host::make_work([device, function, aliases = std::tuple{detail::owned(args)...}] {
    try {
      detail::BackendKeysOnly keys;
      std::apply(function, aliases);
    } catch (...) {
      runtime::record_exception(device, std::current_exception());
    }
  });
  MB_DEVICE_CHECK(device::host::send(stream, std::move(work)));
  if ((detail::on_cpu(args) || ...)) runtime::synchronize_stream(runtime::current_c10_stream(device));
}

}  // namespace mybackend::aten
