// Entry points of csrc/kernels/nll_loss.cu: the negative log likelihood of `n * s` targets among `c` classes.
//
// Scores are n x c x s, targets n x s (int64 or uint8), all contiguous. A target outside the classes is reported; one
// equal to `ignore` takes no part.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::ErrorRecord;
using device::Stream;

enum class LossReduction : int { None = 0, Mean = 1, Sum = 2 };

struct NllLossArgs {
  int64_t n, c, s;
  int64_t ignore;
  LossReduction reduction;
  DType dtype, target_dtype;
  const void* target;
  const void* weight;  // of `dtype`, one a class, or nullptr
};

// Pieces the targets are divided into for the sum: decided by their number alone.
inline int64_t nll_loss_pieces(int64_t targets) {
  constexpr int64_t kTargetsPerPiece = 4096, kMost = 256;
  const int64_t pieces = (targets + kTargetsPerPiece - 1) / kTargetsPerPiece;
  return pieces < 1 ? 1 : pieces > kMost ? kMost : pieces;
}

// `loss` has n * s elements without reduction, one with; `total_weight` has one. `workspace` holds 2 x nll_loss_pieces
// elements of the compute type; it is not read without reduction.
MB_DECLARE_KERNEL(nll_loss, void(Stream stream, const NllLossArgs& args, const void* scores, void* loss,
                                 void* total_weight, void* workspace, ErrorRecord* errors));

// Writes all of grad_in. `grad` is like `loss` above.
MB_DECLARE_KERNEL(nll_loss_backward, void(Stream stream, const NllLossArgs& args, const void* grad,
                                          const void* total_weight, void* grad_in, ErrorRecord* errors));

}  // namespace mybackend::kernels
