// c10::Scalar arguments as the plain bytes kernels take. A value that the type cannot hold raises as `Scalar::to` does.
#pragma once

#include <c10/core/Scalar.h>

#include "csrc/device/number.h"

namespace mybackend::aten {

// Writes `value`, as a tensor of `dtype` would hold it, to `bytes` (16 of them).
void hold(const c10::Scalar& value, DType dtype, char* bytes);

// An argument for a kernel that computes in compute_dtype(`dtype`); not rounded to half where half is only stored.
inline Number number_of(const c10::Scalar& value, DType dtype) {
  Number number;
  hold(value, compute_dtype(dtype), number.bytes);
  return number;
}

}  // namespace mybackend::aten
