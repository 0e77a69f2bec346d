// Library: matrix products and convolutions, done by a library of the driver in use.
//
//   host   libtorch's CPU operators (oneDNN, MKL) on the same memory         library_host.cpp
//   cuda   cuBLASLt and cuDNN, found at run time               library_vendor.cpp
//
// Callers (matmul.cpp, convolution.cpp) have checked shapes, dtypes and devices, own the outputs they pass and run
// under a device guard; functions enqueue on the current stream of the outputs' device. Outputs may have any strides,
// but do not overlap inputs unless it is said. `beta` of zero means that `self` is not read.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>
#include <optional>

namespace mybackend::aten {

enum class Epilogue { None, Relu, Gelu };

struct ConvolutionParameters {
  c10::DimVector stride, padding, dilation, output_padding;
  bool transposed;
  int64_t groups;
};

// New memory for what a convolution, and its backward, write.
at::Tensor convolution_output(const at::Tensor& input, const at::Tensor& weight,
                              const ConvolutionParameters& parameters, at::MemoryFormat format);
std::array<at::Tensor, 3> convolution_gradients(const at::Tensor& grad, const at::Tensor& input,
                                                const at::Tensor& weight, std::array<bool, 3> wanted,
                                                at::MemoryFormat format);

class Library {
 public:
  using Tensor = at::Tensor;
  using Scalar = at::Scalar;
  virtual ~Library() = default;

  // out = a @ b
  virtual void mm(const Tensor& a, const Tensor& b, const Tensor& out) const = 0;
  virtual void bmm(const Tensor& a, const Tensor& b, const Tensor& out) const = 0;
  // out = epilogue(beta * self + alpha * a @ b); `self` broadcasts to out and may be out.
  virtual void addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                     Epilogue epilogue, const Tensor& out) const = 0;
  virtual void baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                       const Tensor& out) const = 0;
  virtual void addmv(const Tensor& self, const Tensor& matrix, const Tensor& vector, const Scalar& beta,
                     const Scalar& alpha, const Tensor& out) const = 0;
  // out, a 0-dim tensor, = sum a[i] * b[i]; vdot conjugates a.
  virtual void dot(const Tensor& a, const Tensor& b, const Tensor& out) const = 0;
  virtual void vdot(const Tensor& a, const Tensor& b, const Tensor& out) const = 0;
  // int8 x int8 -> int32
  virtual void int_mm(const Tensor& a, const Tensor& b, const Tensor& out) const = 0;

  // Outputs are the library's to make, in the memory format that suits it.
  virtual Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                             const ConvolutionParameters& parameters) const = 0;
  // Gradients of input, weight and bias; one that is not `wanted` is undefined.
  virtual std::array<Tensor, 3> convolution_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                                     const ConvolutionParameters& parameters,
                                                     std::array<bool, 3> wanted) const = 0;
};

// The library of the driver in use. Raises when there is none, or when it is not installed.
const Library& library();

// The two implementations.
const Library& host_library();
const Library& cuda_library();

}  // namespace mybackend::aten
