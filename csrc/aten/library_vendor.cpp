// The cuda driver's Library: cuBLASLt (cuda_gemm.h) and cuDNN (cuda_convolution.h); where there is no cuDNN,
// convolution in two dimensions is a product of windows (im2col_convolution.h).
#include <ATen/ops/gelu.h>

#include "csrc/aten/cuda_convolution.h"
#include "csrc/aten/cuda_gemm.h"
#include "csrc/aten/cudnn.h"
#include "csrc/aten/im2col_convolution.h"
#include "csrc/aten/library.h"

namespace mybackend::aten {
namespace {

using at::Scalar;
using at::Tensor;

// A vector that is added to every row: what cuBLASLt adds in its epilogue.
bool is_row_bias(const Tensor& self, const Tensor& out) {
  if (self.scalar_type() != out.scalar_type()) return false;
  if (self.dim() == 1) return self.size(0) == out.size(1) && (self.size(0) == 1 || self.stride(0) == 1);
  return self.dim() == 2 && self.sizes() == out.sizes() && self.stride(0) == 0 &&
         (self.size(1) == 1 || self.stride(1) == 1);
}

class CudaLibrary final : public Library {
 public:
  void mm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    cuda_gemm({.a = a, .b = b, .out = out});
  }
  void bmm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    cuda_gemm({.a = a, .b = b, .out = out});
  }

  void addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
             Epilogue epilogue, const Tensor& out) const override {
    Gemm gemm{.a = a, .b = b, .out = out, .alpha = alpha, .relu = epilogue == Epilogue::Relu};
    if (beta.equal(1.0) && is_row_bias(self, out) && !out.is_complex()) {
      gemm.bias = self.dim() == 1 ? self : self.select(0, 0);
    } else {
      start_from(self, beta, gemm);
    }
    cuda_gemm(gemm);
    if (epilogue == Epilogue::Gelu) at::gelu_(const_cast<Tensor&>(out));
  }

  void baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
               const Tensor& out) const override {
    Gemm gemm{.a = a, .b = b, .out = out, .alpha = alpha};
    start_from(self, beta, gemm);
    cuda_gemm(gemm);
  }

  void addmv(const Tensor& self, const Tensor& matrix, const Tensor& vector, const Scalar& beta, const Scalar& alpha,
             const Tensor& out) const override {
    Gemm gemm{.a = matrix, .b = vector.unsqueeze(1), .out = out.unsqueeze(1), .alpha = alpha};
    start_from(self.dim() == 1 ? self.unsqueeze(1) : self, beta, gemm);
    cuda_gemm(gemm);
  }

  void dot(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    cuda_gemm({.a = a.unsqueeze(0), .b = b.unsqueeze(1), .out = out.view({1, 1})});
  }
  void vdot(const Tensor& a, const Tensor& b, const Tensor& out) const override { dot(a.conj(), b, out); }
  void int_mm(const Tensor& a, const Tensor& b, const Tensor& out) const override {
    cuda_gemm({.a = a, .b = b, .out = out});
  }

  Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                     const ConvolutionParameters& parameters) const override {
    const Tensor out = convolution_output(input, weight, parameters, convolution_format(input, weight));
    cudnn::available() ? cuda_convolution(input, weight, bias, parameters, out)
                       : im2col_convolution(input, weight, bias, parameters, out);
    return out;
  }
  std::array<Tensor, 3> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                             const ConvolutionParameters& parameters,
                                             std::array<bool, 3> wanted) const override {
    const auto gradients = convolution_gradients(grad, input, weight, wanted, convolution_format(input, weight));
    cudnn::available() ? cuda_convolution_backward(grad, input, weight, parameters, gradients)
                       : im2col_convolution_backward(grad, input, weight, parameters, gradients);
    return gradients;
  }

 private:
  static at::MemoryFormat convolution_format(const Tensor& input, const Tensor& weight) {
    const auto format = input.suggest_memory_format();
    return format != at::MemoryFormat::Contiguous ? format : weight.suggest_memory_format();
  }
  // Lays `self` into the output, to which the product is added.
  static void start_from(const Tensor& self, const Scalar& beta, Gemm& gemm) {
    if (beta.equal(0.0)) return;
    gemm.beta = beta;
    if (!self.is_alias_of(gemm.out) || !self.sizes().equals(gemm.out.sizes()) ||
        self.const_data_ptr() != gemm.out.const_data_ptr() || !self.strides().equals(gemm.out.strides()))
      gemm.out.copy_(self.expand_as(gemm.out));
  }
};

}  // namespace

const Library& cuda_library() {
  static const CudaLibrary library;
  return library;
}

}  // namespace mybackend::aten
