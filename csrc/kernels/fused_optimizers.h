// Entry points of csrc/kernels/fused_optimizers.cu: one step of an optimizer over lists of tensors.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/kernels/tensor_lists.h"

namespace mybackend::kernels {
using device::Stream;

// What all fused optimizers have. Pointers are to one float on the device, or null.
struct FusedStep {
  double lr;
  const float* lr_tensor;  // instead of `lr`
  double weight_decay;
  bool maximize;
  const float* grad_scale;  // gradients are divided by it, and written back
  const float* found_inf;   // 1: nothing is done
};

struct Adam {
  double beta1, beta2, eps;
  bool amsgrad, decoupled;  // decoupled weight decay is AdamW
};

struct Sgd {
  double momentum, dampening;
  bool nesterov, first_step;
};

struct Adagrad {
  double lr_decay, eps;
};

// Lists: parameters, gradients, averages, averages of squares, and with amsgrad their maxima. `steps[t]` is a float.
MB_DECLARE_KERNEL(fused_adam, void(Stream, const TensorLists&, void* const* steps, const FusedStep&, const Adam&));
// Lists: parameters, gradients, and with momentum its buffers.
MB_DECLARE_KERNEL(fused_sgd, void(Stream, const TensorLists&, const FusedStep&, const Sgd&));
// Lists: parameters, gradients, sums of squares.
MB_DECLARE_KERNEL(fused_adagrad,
                  void(Stream, const TensorLists&, void* const* steps, const FusedStep&, const Adagrad&));

}  // namespace mybackend::kernels
