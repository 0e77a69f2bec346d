// out = epilogue(alpha * a @ b + beta * out + bias) by cuBLASLt.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace mybackend::aten {

struct Gemm {
  at::Tensor a, b;  // (m, k) and (k, n), or three dimensions with equal batches
  at::Tensor out;   // (m, n), any strides
  at::Tensor bias;  // (n), dense, or undefined
  at::Scalar alpha = 1, beta = 0;
  bool relu = false;
};

void cuda_gemm(const Gemm& gemm);

}  // namespace mybackend::aten
