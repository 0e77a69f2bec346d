// Two-dimensional convolution as a matrix product of its windows: what the cuda driver does without cuDNN. The
// arguments are those of Library (library.h). Written in ATen operators of this device only.
#pragma once

#include "csrc/aten/library.h"

namespace mybackend::aten {

void im2col_convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                        const ConvolutionParameters& parameters, const at::Tensor& out);
void im2col_convolution_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                                 const ConvolutionParameters& parameters, const std::array<at::Tensor, 3>& gradients);

}  // namespace mybackend::aten
