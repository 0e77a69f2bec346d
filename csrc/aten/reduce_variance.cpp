// var, std and their *_mean forms: upstream's functions refuse devices they do not know, so theirs are repeated here,
// with the same checks and wording. Complex numbers are handled as two real arrays.
#include <ATen/native/ReduceOpsUtils.h>
#include <ATen/ops/add.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>
#include <ATen/ops/sqrt.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/reduction.h"
#include "csrc/kernels/reductions.h"
#include "generated/reduce.h"

namespace mybackend::aten {
namespace {

using at::OptionalIntArrayRef;
using at::Scalar;
using at::Tensor;
using at::TensorIterator;

void run(const char* name, TensorIterator& iter, const std::optional<Scalar>& correction_option, bool take_root) {
  const double correction = correction_option.value_or(1).toDouble();
  const int64_t count = iter.num_output_elements() == 0 ? 0 : iter.numel() / iter.num_output_elements();
  if (static_cast<double>(count) - correction <= 0)
    TORCH_WARN(
        name,
        "(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
        "divided by output numel).");
  if (iter.numel() == 0) {
    for (int k = 0; k < iter.noutputs(); k++) iter.output(k).fill_(std::numeric_limits<double>::quiet_NaN());
    return;
  }
  DeviceWorkspace workspace;
  kernels::reduce_variance(runtime::current_stream(iter.device(0).index()), reduction_of(iter), workspace, correction,
                           take_root);
}

c10::TensorOptions real_options(const Tensor& self) {
  return self.options().dtype(c10::toRealValueType(self.scalar_type()));
}

Tensor& spread_out(const char* name, Tensor& result, const Tensor& self, OptionalIntArrayRef dim,
                   const std::optional<Scalar>& correction, bool keepdim, bool take_root) {
  TORCH_CHECK(self.layout() == c10::Layout::Strided, "std and var only supports strided layout, got: ", self.layout());
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()),
              "std and var only support floating point and complex dtypes");
  if (self.is_complex()) {
    const auto options = self.options().dtype(c10::toRealValueType(result.scalar_type()));
    Tensor real = at::empty({0}, options), imaginary = at::empty({0}, options);
    spread_out(name, real, at::real(self), dim, correction, keepdim, false);
    spread_out(name, imaginary, at::imag(self), dim, correction, keepdim, false);
    at::add_out(result, real, imaginary);
    return take_root ? at::sqrt_out(result, result) : result;
  }
  TensorIterator iter = at::native::make_reduction(name, result, self, dim, keepdim, result.scalar_type());
  TORCH_CHECK(at::canCast(self.scalar_type(), result.scalar_type()), "result type ", self.scalar_type(),
              " can't be cast to the desired output type ", result.scalar_type());
  run(name, iter, correction, take_root);
  return result;
}

void spread_and_mean_out(const char* name, Tensor& spread, Tensor& mean, const Tensor& self, OptionalIntArrayRef dim,
                         const std::optional<Scalar>& correction, bool keepdim, bool take_root) {
  TORCH_CHECK(self.layout() == c10::Layout::Strided, name, " only supports strided layout, got: ", self.layout());
  TORCH_CHECK(at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type()), name,
              " only support floating point and complex dtypes");
  if (self.is_complex()) {
    const auto options = spread.options();
    Tensor spreads[2] = {at::empty({0}, options), at::empty({0}, options)};
    Tensor means[2] = {at::empty({0}, options), at::empty({0}, options)};
    spread_and_mean_out(name, spreads[0], means[0], at::real(self), dim, correction, keepdim, false);
    spread_and_mean_out(name, spreads[1], means[1], at::imag(self), dim, correction, keepdim, false);
    at::add_out(spread, spreads[0], spreads[1]);
    if (take_root) at::sqrt_out(spread, spread);
    at::complex_out(mean, means[0], means[1]);
    return;
  }
  TensorIterator iter = at::native::make_reduction(name, spread, mean, self, dim, keepdim, spread.scalar_type());
  run(name, iter, correction, take_root);
}

std::tuple<Tensor, Tensor> spread_and_mean(const char* name, const Tensor& self, OptionalIntArrayRef dim,
                                           const std::optional<Scalar>& correction, bool keepdim, bool take_root) {
  Tensor spread = at::empty({0}, real_options(self)), mean = at::empty({0}, self.options());
  spread_and_mean_out(name, spread, mean, self, dim, correction, keepdim, take_root);
  return {std::move(spread), std::move(mean)};
}

}  // namespace

Tensor var_correction(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                      bool keepdim) {
  Tensor result = at::empty({0}, real_options(self));
  return spread_out("var", result, self, dim, correction, keepdim, false);
}

Tensor& var_correction_out(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                           bool keepdim, Tensor& out) {
  return spread_out("var", out, self, dim, correction, keepdim, false);
}

Tensor std_correction(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                      bool keepdim) {
  Tensor result = at::empty({0}, real_options(self));
  return spread_out("std", result, self, dim, correction, keepdim, true);
}

Tensor& std_correction_out(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
                           bool keepdim, Tensor& out) {
  return spread_out("std", out, self, dim, correction, keepdim, true);
}

std::tuple<Tensor, Tensor> var_mean_correction(const Tensor& self, OptionalIntArrayRef dim,
                                               const std::optional<Scalar>& correction, bool keepdim) {
  return spread_and_mean("var_mean", self, dim, correction, keepdim, false);
}

std::tuple<Tensor, Tensor> std_mean_correction(const Tensor& self, OptionalIntArrayRef dim,
                                               const std::optional<Scalar>& correction, bool keepdim) {
  return spread_and_mean("std_mean", self, dim, correction, keepdim, true);
}

}  // namespace mybackend::aten
