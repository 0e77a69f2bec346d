// multi_tensor(): one launch over all tensors of several lists, cut into chunks.
//
// A block handles one chunk of one tensor: it finds the tensor by bisection in the running number of blocks, which
// needs no table of blocks, so that a launch is limited by the number of tensors alone. As many tensors as fit into a
// kernel's argument (kMaxKernelBytes: 4 KiB for CUDA) go into one launch; on the host that is all of them in practice.
// Chunks do not depend on the number of threads or on the other tensors of the list, so neither do results.
//
// The functor is called as f(block, span, extra): `span` is the chunk in every list, `extra` what belongs to its
// tensor.
#pragma once

#include <algorithm>
#include <limits>

#include "csrc/device/span.h"
#include "csrc/kernels/tensor_lists.h"

namespace mybackend::kernels {

using device::Block;
using device::Span;
using device::Stream;

constexpr int64_t kPointwiseChunk = 4096;

struct NoExtra {};

template <int N, class Extra, class F>
struct MultiTensor {
  static constexpr int64_t kBytesPerTensor = N * 8 + 8 + 4 + sizeof(Extra);
  static constexpr int kTensors = int((device::kMaxKernelBytes - 128 - int64_t(sizeof(F))) / kBytesPerTensor);
  static_assert(kTensors > 0);

  F f;
  int count;
  DType dtype[N];
  int64_t chunk;
  char* data[N][kTensors];
  int64_t numel[kTensors];
  Extra extra[kTensors];
  int32_t end_block[kTensors];  // running number of blocks, this tensor's included

  MB_DEVICE void operator()(Block block) const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (block.index < end_block[middle]) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    const int64_t begin = (block.index - (low > 0 ? end_block[low - 1] : 0)) * chunk;
    Span<N> span;
    span.position = begin;
    span.length = numel[low] - begin < chunk ? numel[low] - begin : chunk;
    for (int k = 0; k < N; k++) {
      span.dtype[k] = dtype[k];
      span.data[k] = data[k][low] + begin * size_of(dtype[k]);
    }
    f(block, span, extra[low]);
  }
};

// `extra(t)` yields what goes with tensor t. Tensors without elements are left out.
template <int N, class Extra, class F, class ExtraOf>
void multi_tensor(Stream stream, const TensorLists& lists, int64_t chunk, const F& f, ExtraOf extra) {
  using Kernel = MultiTensor<N, Extra, F>;
  static_assert(int64_t(sizeof(Kernel)) <= device::kMaxKernelBytes);
  Kernel kernel;
  kernel.f = f;
  kernel.chunk = chunk;
  for (int k = 0; k < N; k++) kernel.dtype[k] = lists.dtype[k];
  int64_t t = 0;
  while (t < lists.count) {
    int64_t blocks = 0, elements = 0;
    int count = 0;
    for (; t < lists.count && count < Kernel::kTensors; t++) {
      const int64_t numel = lists.numel[t];
      const int64_t more = numel <= chunk ? numel > 0 : device::ceil_div(numel, chunk);
      if (more == 0) continue;
      if (blocks + more > std::numeric_limits<int32_t>::max() && count > 0) break;
      for (int k = 0; k < N; k++) kernel.data[k][count] = static_cast<char*>(lists.data[k][t]);
      kernel.numel[count] = numel;
      kernel.extra[count] = extra(t);
      kernel.end_block[count++] = int32_t(blocks += more);
      elements += numel;
    }
    kernel.count = count;
    if (blocks > 0) device::launch(stream, {blocks, 256, device::ceil_div(elements, blocks)}, kernel);
  }
}

template <int N, class F>
void multi_tensor(Stream stream, const TensorLists& lists, int64_t chunk, const F& f) {
  multi_tensor<N, NoExtra>(stream, lists, chunk, f, [](int64_t) { return NoExtra{}; });
}

}  // namespace mybackend::kernels
