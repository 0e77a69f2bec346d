// Convolution and its gradients by cuDNN; the arguments are those of Library (library.h).
#pragma once

#include "csrc/aten/library.h"

namespace mybackend::aten {

void cuda_convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                      const ConvolutionParameters& parameters, const at::Tensor& out);
void cuda_convolution_backward(const at::Tensor& grad, const at::Tensor& input, const at::Tensor& weight,
                               const ConvolutionParameters& parameters, const std::array<at::Tensor, 3>& gradients);

}  // namespace mybackend::aten
