// each_element(): the elementwise loop over Operands that every pointwise kernel is made of.
//
//   each_element<Out, In...>(block, operands, f)          out = f(in...)
//   each_element_indexed<Out, In...>(block, operands, f)  out = f(position, in...), position counts elements in order
//
// A block handles kPointwiseBlock consecutive elements (in iteration order). Operand 0 is the output. Out and In are
// the types f works in; stored types are converted on the way in and out, strides are followed, scalars are spread.
// Operands may be the same array exactly, but must not overlap in part (TensorIterator guarantees it).
//
//   C++ compiler   a tile of elements at a time: an operand that lies ready is used in place, others are gathered
//                  into a buffer first, so the loop over f is always contiguous and always vectorises
//   nvcc           contiguous operands of one type in 16-byte accesses; otherwise one element at a time
#pragma once

#include "csrc/device/numeric.h"
#include "csrc/device/operands.h"
#include "csrc/device/portable.h"

namespace mybackend::device {
constexpr int kPointwiseThreads = 128;
constexpr int64_t kElementsPerBlock = 2048;
}  // namespace mybackend::device

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/tile_cuda.h"
#else
#include "csrc/device/tile_host.h"
#endif

namespace mybackend::device {

template <bool Indexed, class F, class Out, class... In>
struct Pointwise {
  Operands<1 + sizeof...(In)> operands;
  F f;

  MB_DEVICE void operator()(Block block) const { each_in_block<Indexed, Out, In...>(block, operands, f); }
};

// For kernels whose block handles kElementsPerBlock elements whatever the driver.
inline Grid pointwise_grid(int64_t numel) {
  return {ceil_div(numel, kElementsPerBlock), kPointwiseThreads, kElementsPerBlock};
}

template <bool Indexed, class Out, class... In, class F>
void launch_pointwise(Stream stream, const Operands<1 + sizeof...(In)>& operands, F f) {
  launch(stream, {ceil_div(operands.numel, kPointwiseBlock), kPointwiseThreads, kPointwiseBlock},
         Pointwise<Indexed, F, Out, In...>{operands, f});
}

// Launches out = f(in...) over all elements; f is a functor with an MB_DEVICE call operator.
template <class Out, class... In, class F>
void pointwise(Stream stream, const Operands<1 + sizeof...(In)>& operands, F f) {
  launch_pointwise<false, Out, In...>(stream, operands, f);
}

// Launches out = f(position, in...).
template <class Out, class... In, class F>
void pointwise_indexed(Stream stream, const Operands<1 + sizeof...(In)>& operands, F f) {
  launch_pointwise<true, Out, In...>(stream, operands, f);
}

}  // namespace mybackend::device
