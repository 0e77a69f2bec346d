// The classes behind generated wrappers of structured operators: Functional<Op>, Inplace<Op>, Out<Op>.
//
// `Op` is upstream's or a family's `structured_<name>`: its `meta` computes shapes and calls set_output_*, its `impl`
// reads the outputs with maybe_get_output. These classes say what an output is:
//   Functional  a new tensor, owned here until `take`
//   Inplace     self, whose properties must already be those that meta asks for
//   Out         the caller's tensor, resized when its size differs
// When meta asks for exact strides (set_output_strided) that a given tensor does not have, impl writes to a proxy, and
// `finish` copies it. The device is set at the first output and restored on destruction.
#pragma once

#if __has_include(<ATen/NamedTensorUtils.h>)
#include <ATen/NamedTensorUtils.h>
#endif
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <type_traits>
#include <utility>

#include "csrc/runtime/device.h"

namespace mybackend::aten {

#define MB_IMPL_FUNC(name) void structured_##name::impl

namespace structured {

at::Tensor create_output(at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options);
void resize_output(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                   const at::TensorOptions& options);
void check_inplace(const at::Tensor& self, at::IntArrayRef sizes, const at::TensorOptions& options);
// Undefined when `out` already has these strides.
at::Tensor create_proxy(const at::Tensor& out, at::IntArrayRef sizes, at::IntArrayRef strides,
                        const at::TensorOptions& options);
// Makes the outputs' device current; a second output has to be on the same one.
inline void set_device(std::optional<runtime::DeviceScope>& scope, c10::Device& current, c10::Device wanted) {
  if (!scope) {
    TORCH_INTERNAL_ASSERT(wanted.is_privateuseone());
    scope.emplace(wanted.index());
    current = wanted;
  }
  TORCH_INTERNAL_ASSERT(current == wanted, "structured kernels don't support multi-device outputs");
}

// Where torch has named tensors, set_output_* also take names: `Names` is DimnameList there and nothing elsewhere.
inline void propagate_names(const at::Tensor&) {}
#if __has_include(<ATen/NamedTensorUtils.h>)
inline void propagate_names(const at::Tensor& out, at::DimnameList names) {
  if (!names.empty()) at::namedinference::propagate_names(out, names);
}
#endif

using SetOutput = decltype(&at::impl::MetaBase::set_output_raw_strided);
using at::impl::MetaBase;

// `Outputs` holds the tensors: get(i) is what impl sees, prepare(i, ...) makes it what meta asks for.
template <class Op, class Outputs, class Member = SetOutput>
class Structured;

template <class Op, class Outputs, class... Names>
class Structured<Op, Outputs,
                 void (MetaBase::*)(int64_t, at::IntArrayRef, at::IntArrayRef, at::TensorOptions, Names...)>
    final : public Op {
 public:
  template <class... Tensors>
  explicit Structured(Tensors&... tensors) : outputs_(tensors...) {}

  void set_output_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options,
                          Names... names) override {
    set_output(i, sizes, strides, options, true, names...);
  }
  void set_output_raw_strided(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, at::TensorOptions options,
                              Names... names) override {
    set_output(i, sizes, strides, options, false, names...);
  }
  const at::Tensor& maybe_get_output(int64_t i) override { return outputs_.get(i); }

  at::Tensor& output(int64_t i) { return outputs_.get(i); }
  at::Tensor take(int64_t i) { return std::move(outputs_.get(i)); }
  void finish() { outputs_.finish(); }

 private:
  void set_output(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
                  bool exact, Names... names) {
    set_device(scope_, device_, options.device());
    propagate_names(outputs_.prepare(i, sizes, strides, options, exact), names...);
    // After the output exists: TensorIterator reads it back through maybe_get_output.
    if constexpr (std::is_base_of_v<at::TensorIteratorBase, Op>)
      Op::set_output_raw_strided(i, sizes, strides, options, names...);
  }

  Outputs outputs_;
  c10::Device device_{c10::DeviceType::CPU};
  std::optional<runtime::DeviceScope> scope_;
};

template <int N>
class NewOutputs {
 public:
  at::Tensor& get(int64_t i) { return tensors_[i]; }
  const at::Tensor& prepare(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
                            bool /*exact*/) {
    return tensors_[i] = create_output(sizes, strides, options);
  }

 private:
  std::array<at::Tensor, N> tensors_;
};

template <int N, auto check>
class GivenOutputs {
 public:
  template <class... Tensors>
  explicit GivenOutputs(Tensors&... tensors) : tensors_{&tensors...} {}

  at::Tensor& get(int64_t i) { return proxies_[i].defined() ? proxies_[i] : *tensors_[i]; }
  const at::Tensor& prepare(int64_t i, at::IntArrayRef sizes, at::IntArrayRef strides, const at::TensorOptions& options,
                            bool exact) {
    check(*tensors_[i], sizes, strides, options);
    if (exact) proxies_[i] = create_proxy(*tensors_[i], sizes, strides, options);
    return *tensors_[i];
  }
  void finish() {
    for (int i = 0; i < N; i++)
      if (proxies_[i].defined()) [[unlikely]]
        tensors_[i]->copy_(proxies_[i]);
  }

 private:
  std::array<at::Tensor*, N> tensors_;
  std::array<at::Tensor, N> proxies_;
};

inline void check_self(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef /*strides*/,
                       const at::TensorOptions& options) {
  check_inplace(self, sizes, options);
}

template <class Op, int N>
using Functional = Structured<Op, NewOutputs<N>>;
template <class Op, int N>
using Inplace = Structured<Op, GivenOutputs<N, &check_self>>;
template <class Op, int N>
using Out = Structured<Op, GivenOutputs<N, &resize_output>>;

}  // namespace structured
}  // namespace mybackend::aten
