// Kernel<Signature>: a host-side entry point of csrc/kernels, resolved by name in the driver that is in use.
//
// The same .cu file is built several times: by nvcc (libmb_driver_cuda.so) and by the C++ compiler for each ISA level
// (libmb_kernels_host_v3.so, _v4.so). Each build is a shared library of its own with hidden symbols, so that no inline
// function compiled for AVX-512 can be merged into a build for AVX2. A library lists its entries by name:
//
//   softmax.h    MB_DECLARE_KERNEL(softmax, void(Stream stream, const SoftmaxArgs& args));
//   softmax.cu   MB_DEFINE_KERNEL(softmax, (Stream stream, const SoftmaxArgs& args)) { ... }
//   caller       kernels::softmax(stream, args);
//
// The first call looks the address up; later calls are one load and one indirect call.
#pragma once

#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "csrc/device/api.h"

namespace mybackend::device {

// Called inside a catch block when an entry point throws: rethrows what it knows as a framework exception (the runtime
// layer installs one that raises c10 errors), returns otherwise.
inline std::atomic<void (*)()> exception_translator{nullptr};

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> {
 public:
  using Function = void (*)(Args...);
  constexpr explicit Kernel(const char* name) : name_(name) {}

  void operator()(Args... args) const {
    Function function = function_.load(std::memory_order_relaxed);
    if (function == nullptr) [[unlikely]]
      function = resolve();
    try {
      function(static_cast<Args&&>(args)...);
    } catch (...) {
      if (auto translate = exception_translator.load()) translate();
      throw;
    }
  }

 private:
  Function resolve() const {
    void* address = api().find_kernel(name_);
    if (address == nullptr)
      throw std::runtime_error(std::string("mybackend: kernel '") + name_ + "' is missing from the " + api().name +
                               " driver's kernel library; rebuild mybackend");
    Function function = reinterpret_cast<Function>(address);
    function_.store(function, std::memory_order_relaxed);
    return function;
  }

  const char* name_;
  mutable std::atomic<Function> function_{nullptr};
};

// Node of a kernel library's own list of entries; built by MB_DEFINE_KERNEL before main, read by find_in_library.
struct KernelEntry {
  const char* name;
  void* address;
  KernelEntry* next;
  static inline KernelEntry* head = nullptr;
  KernelEntry(const char* entry_name, void* entry_address) : name(entry_name), address(entry_address), next(head) {
    head = this;
  }
};

// Address of an entry of the library this is compiled into, or nullptr.
inline void* find_in_library(const char* name) {
  for (const KernelEntry* entry = KernelEntry::head; entry != nullptr; entry = entry->next)
    if (std::strcmp(entry->name, name) == 0) return entry->address;
  return nullptr;
}

}  // namespace mybackend::device

#define MB_DECLARE_KERNEL(name, ...)                           \
  using name##_signature = __VA_ARGS__;                        \
  inline const ::mybackend::device::Kernel<__VA_ARGS__> name { \
    #name                                                      \
  }

#define MB_DEFINE_KERNEL(name, parameters)                                                               \
  static void name##_entry parameters;                                                                   \
  static const ::mybackend::device::KernelEntry name##_listed{                                           \
      #name, reinterpret_cast<void*>(static_cast<std::add_pointer_t<name##_signature>>(&name##_entry))}; \
  static void name##_entry parameters
