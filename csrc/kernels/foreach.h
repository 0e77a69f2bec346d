// Entry points of csrc/kernels/foreach_*.cu: elementwise operations and reductions over lists of tensors. The output is
// list 0 and may be one of the inputs.
#pragma once

#include <c10/util/complex.h>

#include "csrc/device/kernel.h"
#include "csrc/kernels/tensor_lists.h"

namespace mybackend::kernels {
using device::Stream;

// The second operand of a list of tensors that is not a list of tensors: a number for each tensor, or one element on
// the device. The numbers are complex so that they hold any; 64-bit integers travel beside them.
struct Number {
  c10::complex<double> value;
  int64_t integer;

  template <class T>
  T to() const {
    if constexpr (is_complex<T>) {
      return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(value.real());
    } else {
      return static_cast<T>(integer);
    }
  }
};

struct Numbers {
  const Number* each = nullptr;  // one a tensor, or `same` for all
  Number same{};
  const void* element = nullptr;  // if set: one element of list 1's dtype, multiplied by `same`
};

enum class Unary : int {
  Abs,
  Neg,
  Sign,
  Sqrt,
  Rsqrt,
  Reciprocal,
  Exp,
  Expm1,
  Log,
  Log10,
  Log1p,
  Log2,
  Sigmoid,
  Tanh,
  Sin,
  Cos,
  Tan,
  Asin,
  Acos,
  Atan,
  Sinh,
  Cosh,
  Erf,
  Erfc,
  Lgamma,
  Ceil,
  Floor,
  Round,
  Trunc,
  Frac,
};
enum class Binary : int { Add, Sub, Mul, Div, Maximum, Minimum, Pow, ReversePow };
enum class Ternary : int { Addcmul, Addcdiv, Lerp };
enum class Norm : int { L1, L2, Inf };

MB_DECLARE_KERNEL(foreach_unary, void(Stream, const TensorLists&, Unary));
MB_DECLARE_KERNEL(foreach_binary_list, void(Stream, const TensorLists&, Binary, const Number& alpha));
MB_DECLARE_KERNEL(foreach_binary_numbers, void(Stream, const TensorLists&, Binary, const Numbers&));
// Addcmul, Addcdiv: lists out, self, a, b; Lerp: lists out, self, end.
MB_DECLARE_KERNEL(foreach_ternary_numbers, void(Stream, const TensorLists&, Ternary, const Numbers&));
MB_DECLARE_KERNEL(foreach_lerp_list, void(Stream, const TensorLists&));
MB_DECLARE_KERNEL(foreach_copy, void(Stream, const TensorLists&));
MB_DECLARE_KERNEL(foreach_zero, void(Stream, const TensorLists&));

// Lists: out (one element a tensor), in. `partial` holds one element of the computing type for each chunk of a tensor
// of several.
constexpr int64_t kReduceChunk = 32768;
MB_DECLARE_KERNEL(foreach_norm, void(Stream, const TensorLists&, Norm, DType compute, void* partial));
MB_DECLARE_KERNEL(foreach_max, void(Stream, const TensorLists&, void* partial));

// Multiplies list 0 by *inverse_scale; an element that was not finite sets *found_inf to 1.
MB_DECLARE_KERNEL(amp_unscale, void(Stream, const TensorLists&, float* found_inf, const float* inverse_scale));
MB_DECLARE_KERNEL(amp_update_scale, void(Stream, float* scale, int* growth_tracker, const float* found_inf,
                                         double growth_factor, double backoff_factor, int64_t growth_interval));

}  // namespace mybackend::kernels
