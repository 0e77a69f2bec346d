// From a DispatchStub's iterator to a kernel of csrc/kernels: the functions pointwise stubs are filled with.
//
// The iterator's device is the current one: wrappers have set it. `Iterator` is TensorIterator or TensorIteratorBase,
// as the stub's type asks.
#pragma once

#include "csrc/aten/iterator.h"

namespace mybackend::aten {

inline device::Stream stream_of(const at::TensorIteratorBase& iter) {
  return runtime::current_stream(iter.device(0).index());
}

template <int N, auto& kernel, class Iterator>
void run_pointwise(Iterator& iter) {
  kernel(stream_of(iter), operands_of<N>(iter));
}

// Kernels that take one scalar argument in the type they compute in.
template <int N, auto& kernel, class Iterator>
void run_with_scalar(Iterator& iter, const c10::Scalar& value) {
  const Operands<N> o = operands_of<N>(iter);
  kernel(stream_of(iter), o, number_of(value, o.compute));
}

// Kernels that take scalar arguments as double.
template <int N, auto& kernel, class Iterator, class... Scalars>
void run_with_doubles(Iterator& iter, const Scalars&... values) {
  kernel(stream_of(iter), operands_of<N>(iter), values.toDouble()...);
}

// Some operands of `o`, the first one being the output: the work of a kernel that writes one of several outputs.
template <int M, int N>
Operands<M> pick(const Operands<N>& o, const int (&which)[M]) {
  Operands<M> picked;
  picked.numel = o.numel;
  picked.ndim = o.ndim;
  picked.compute = o.compute;
  std::memcpy(picked.sizes, o.sizes, sizeof(int64_t) * static_cast<size_t>(o.ndim));
  for (int k = 0; k < M; k++) {
    const int from = which[k];
    picked.dtype[k] = o.dtype[from];
    picked.contiguous[k] = o.contiguous[from];
    picked.data[k] = o.data[from];
    std::memcpy(picked.immediate[k], o.immediate[from], sizeof(o.immediate[from]));
    std::memcpy(picked.strides[k], o.strides[from], sizeof(int64_t) * static_cast<size_t>(o.ndim));
  }
  return picked;
}

}  // namespace mybackend::aten
