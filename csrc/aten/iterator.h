// From TensorIterator to Operands: what every elementwise and reduction stub does first.
//
// TensorIterator has checked shapes, devices, overlap and dtypes and has merged dimensions; this only copies its result
// into plain data that a kernel can take along.
#pragma once

#include <ATen/native/TensorIterator.h>
#include <c10/core/Scalar.h>

#include <cstring>

#include "csrc/aten/scalar.h"
#include "csrc/device/operands.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {

inline DType to_dtype(c10::ScalarType type) {
  return static_cast<DType>(static_cast<int8_t>(type));
}

// The dtype the iterator has found for its operands, or `otherwise` where it has no inputs to find one from. torch 2.11
// can only be asked for a dtype that is there.
template <class Iterator>
c10::ScalarType common_dtype_or(const Iterator& iter, c10::ScalarType otherwise) {
  if constexpr (requires { iter.maybe_common_dtype(); }) {
    return iter.maybe_common_dtype().value_or(otherwise);
  } else {
    return iter.ninputs() > 0 ? iter.common_dtype() : otherwise;
  }
}

// Describes the iterator's operands; throws where a dimension count or dtype is beyond the kernels.
template <int N>
Operands<N> operands_of(const at::TensorIteratorBase& iter) {
  TORCH_INTERNAL_ASSERT(iter.ntensors() == N);
  TORCH_CHECK(iter.ndim() <= kMaxDims, "mybackend: an elementwise operation over ", iter.ndim(),
              " dimensions that cannot be merged is not supported (at most ", kMaxDims, ")");
  Operands<N> o;
  o.numel = iter.numel();
  o.ndim = iter.ndim();
  for (int d = 0; d < o.ndim; d++) o.sizes[d] = iter.shape()[d];
  for (int k = 0; k < N; k++) {
    o.dtype[k] = to_dtype(iter.dtype(k));
    if (k > 0 && iter.device_type(k) == c10::DeviceType::CPU) {  // a 0-dim CPU tensor, by value
      TORCH_INTERNAL_ASSERT(iter.is_cpu_scalar(k));
      o.data[k] = nullptr;
      o.contiguous[k] = false;
      std::memcpy(o.immediate[k], iter.data_ptr(k), static_cast<size_t>(iter.element_size(k)));
      for (int d = 0; d < o.ndim; d++) o.strides[k][d] = 0;
      continue;
    }
    o.data[k] = static_cast<char*>(iter.data_ptr(k));
    int64_t dense = iter.element_size(k);
    bool contiguous = true;
    for (int d = 0; d < o.ndim; d++) {
      o.strides[k][d] = iter.strides(k)[d];
      contiguous = contiguous && (o.sizes[d] == 1 || o.strides[k][d] == dense);
      dense *= o.sizes[d];
    }
    o.contiguous[k] = contiguous;
  }
  o.compute = to_dtype(common_dtype_or(iter, iter.dtype(N - 1)));
  return o;
}

// `o` with one more, last, operand: a scalar rounded as a tensor of `type` would hold it.
template <int N>
Operands<N + 1> with_scalar(const Operands<N>& o, const c10::Scalar& value, c10::ScalarType type) {
  Operands<N + 1> wider;
  wider.numel = o.numel;
  wider.ndim = o.ndim;
  wider.compute = o.compute;
  for (int d = 0; d < o.ndim; d++) wider.sizes[d] = o.sizes[d];
  for (int k = 0; k < N; k++) {
    wider.dtype[k] = o.dtype[k];
    wider.contiguous[k] = o.contiguous[k];
    wider.data[k] = o.data[k];
    std::memcpy(wider.immediate[k], o.immediate[k], sizeof(o.immediate[k]));
    for (int d = 0; d < o.ndim; d++) wider.strides[k][d] = o.strides[k][d];
  }
  wider.dtype[N] = to_dtype(type);
  wider.contiguous[N] = false;
  wider.data[N] = nullptr;
  for (int d = 0; d < o.ndim; d++) wider.strides[N][d] = 0;
  hold(value, wider.dtype[N], wider.immediate[N]);
  return wider;
}

// The same, rounded to what the output holds.
template <int N>
Operands<N + 1> with_scalar(const Operands<N>& o, const c10::Scalar& value) {
  return with_scalar(o, value, static_cast<c10::ScalarType>(o.dtype[0]));
}

}  // namespace mybackend::aten
