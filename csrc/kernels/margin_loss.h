// Entry points of margin_loss.cu: hinge losses of `rows` rows of scores over `classes` classes, all contiguous.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::ErrorRecord;
using device::Stream;

// One target a row. `loss` has a number of the compute type for each row, before any reduction; `grad` is of the
// scores' dtype, one a row or, with `grad_stride` 0, one for all, and multiplied by `scale`. p is 1 or 2.
struct MultiMargin {
  DType dtype;
  int64_t rows, classes;
  int p;
  double margin;
  const void* scores;
  const int64_t* target;
  const void* weight;  // one a class, or nullptr
  ErrorRecord* errors;
};
MB_DECLARE_KERNEL(multi_margin_loss, void(Stream stream, const MultiMargin& args, void* loss));
MB_DECLARE_KERNEL(multi_margin_loss_backward, void(Stream stream, const MultiMargin& args, const void* grad,
                                                   int64_t grad_stride, double scale, void* grad_in));

// As many targets a row as come before its first negative one. `is_target` is of the scores' dtype and shape: 1 for
// classes that are targets, 0 for others.
struct MultilabelMargin {
  DType dtype;
  int64_t rows, classes;
  const void* scores;
  const int64_t* target;
  ErrorRecord* errors;
};
MB_DECLARE_KERNEL(multilabel_margin_loss,
                  void(Stream stream, const MultilabelMargin& args, void* loss, void* is_target));
MB_DECLARE_KERNEL(multilabel_margin_loss_backward,
                  void(Stream stream, const MultilabelMargin& args, const void* is_target, const void* grad,
                       int64_t grad_stride, double scale, void* grad_in));

}  // namespace mybackend::kernels
