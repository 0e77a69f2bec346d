// Entry points of csrc/kernels/layer_norm.cu: layer norm and RMS norm over `n` dense elements of each of `rows` rows.
//
// Weights have the input's dtype or float; either may be nullptr. Means and reciprocal standard deviations are of the
// compute type (float for half and bfloat16).
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::Stream;

struct LayerNormArgs {
  int64_t rows, n;
  bool rms;  // RMS norm: nothing is subtracted; `mean` and `bias` are nullptr
  DType dtype, weight_dtype;
  const void* in;
  const void* weight;
  const void* bias;
};

MB_DECLARE_KERNEL(layer_norm,
                  void(Stream stream, const LayerNormArgs& args, double eps, void* out, void* mean, void* rstd));

// How many pieces the rows are divided into for the gradients of the weights: decided by the shape alone, so that the
// sums do not depend on the number of threads.
inline int64_t layer_norm_pieces(int64_t rows, int64_t n) {
  constexpr int64_t kMost = 128, kLargestWorkspace = int64_t(1) << 24;
  int64_t pieces = n > 0 ? kLargestWorkspace / n : kMost;
  pieces = pieces < 2 ? 2 : pieces > kMost ? kMost : pieces;
  return rows < pieces ? rows : pieces;
}

// Gradients of the input, the weight and the bias; a nullptr is not computed. `workspace` holds 2 x layer_norm_pieces x
// n elements of the compute type, or is nullptr when neither weight gradient is wanted.
MB_DECLARE_KERNEL(layer_norm_backward,
                  void(Stream stream, const LayerNormArgs& args, const void* grad, const void* mean, const void* rstd,
                       void* grad_in, void* grad_weight, void* grad_bias, void* workspace));

}  // namespace mybackend::kernels
