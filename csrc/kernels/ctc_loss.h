// Entry points of ctc_loss.cu: connectionist temporal classification and its gradient.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::ErrorRecord;
using device::Stream;

// Log probabilities are (time, batch, classes) with strides in elements. The target of item b is `target_length[b]`
// labels from `target_begin[b]` on, `target_stride` apart. With U the longest target, an item has 2 U + 1 states:
// blank, first label, blank, second label, ..., blank.
struct CtcLoss {
  DType dtype, target_dtype;  // float or double; int64 or int32
  int64_t time, batch, classes;
  int64_t time_stride, batch_stride, class_stride;
  int64_t longest, target_stride, blank;
  const void* log_probs;
  const void* targets;
  const int64_t* input_length;   // (batch)
  const int64_t* target_length;  // (batch)
  const int64_t* target_begin;   // (batch)
  ErrorRecord* errors;
};

// `loss` is (batch), `log_alpha` (batch, time, 2 U + 1): the logarithm of the sum over beginnings of paths that are in
// a state at a time; -inf where an item has no such state or time.
MB_DECLARE_KERNEL(ctc_loss, void(Stream stream, const CtcLoss& args, void* loss, void* log_alpha));

// `log_beta` (batch, time, 2 U + 1) and `follower` (batch, U) are workspace; `grad_in` is (time, batch, classes),
// contiguous, and written everywhere.
MB_DECLARE_KERNEL(ctc_loss_backward,
                  void(Stream stream, const CtcLoss& args, const void* grad, int64_t grad_stride, const void* loss,
                       const void* log_alpha, bool zero_infinity, void* log_beta, int64_t* follower, void* grad_in));

}  // namespace mybackend::kernels
