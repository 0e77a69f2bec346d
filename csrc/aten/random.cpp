// Random numbers: the distribution stubs, randperm, multinomial with replacement and dropout.
//
// Upstream's distribution templates check arguments and build the iterator; a stub reserves from the generator and
// launches. Numbers are a function of (seed, offset, position): see csrc/kernels/random.cu.
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/ops/argsort.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/random.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/generator.h"
#include "generated/random.h"

namespace mybackend::aten {
namespace {

using at::Generator;
using at::Tensor;
using at::TensorBase;
using at::TensorIterator;
using at::TensorIteratorBase;

kernels::Seed reserve(const std::optional<Generator>& generator) {
  const auto [seed, offset] = runtime::philox(generator, kernels::kWordsPerDraw);
  return {seed, offset};
}

device::Stream stream_of(const TensorIteratorBase& iter) {
  return runtime::current_stream(iter.device(0).index());
}

template <class... Parameters, class... Values>
void fill_random(const device::Kernel<void(device::Stream, const Operands<1>&, kernels::Seed, Parameters...)>& kernel,
                 TensorIteratorBase& iter, const std::optional<Generator>& generator, Values... values) {
  if (iter.numel() == 0) return;
  kernel(stream_of(iter), operands_of<1>(iter), reserve(generator), values...);
}

// The largest value below `to` that `type` can hold.
double largest_below(double to, c10::ScalarType type) {
  switch (type) {
    case c10::kDouble:
      return std::nextafter(to, -INFINITY);
    case c10::kHalf:
    case c10::kBFloat16: {
      // Both have a sign, an exponent and a mantissa in order, so stepping the bits steps the value.
      const auto step_down = [&](auto value) {
        if (double(value) < to) return double(value);
        if (value.x == 0) value.x = 0x8000;
        value.x = static_cast<uint16_t>(value.x & 0x8000 ? value.x + 1 : value.x - 1);
        return double(value);
      };
      return type == c10::kHalf ? step_down(c10::Half(float(to))) : step_down(c10::BFloat16(float(to)));
    }
    default:
      return std::nextafterf(float(to), -INFINITY);
  }
}

void uniform_kernel(TensorIteratorBase& iter, double from, double to, std::optional<Generator> generator) {
  const double last = from < to ? largest_below(to, iter.dtype(0)) : to;
  fill_random(kernels::uniform, iter, generator, from, to, last);
}

void normal_kernel(const TensorBase& self, double mean, double std, std::optional<Generator> generator) {
  TensorIterator iter = TensorIterator::borrowing_nullary_op(self);
  fill_random(kernels::normal, iter, generator, mean, std);
}

void log_normal_kernel(TensorIteratorBase& iter, double mean, double std, std::optional<Generator> generator) {
  fill_random(kernels::log_normal, iter, generator, mean, std);
}

void exponential_kernel(TensorIteratorBase& iter, double lambda, std::optional<Generator> generator) {
  fill_random(kernels::exponential, iter, generator, lambda);
}

void cauchy_kernel(TensorIteratorBase& iter, double median, double sigma, std::optional<Generator> generator) {
  fill_random(kernels::cauchy, iter, generator, median, sigma);
}

void geometric_kernel(TensorIteratorBase& iter, double p, std::optional<Generator> generator) {
  fill_random(kernels::geometric, iter, generator, p);
}

void bernoulli_scalar_kernel(const TensorBase& self, double p, std::optional<Generator> generator) {
  TensorIterator iter = TensorIterator::borrowing_nullary_op(self);
  fill_random(kernels::bernoulli, iter, generator, p);
}

void bernoulli_tensor_kernel(const TensorBase& self, const TensorBase& p, std::optional<Generator> generator) {
  if (self.numel() == 0) return;
  const auto drawn_in = p.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  const Tensor uniform = at::empty(p.sizes(), p.options().dtype(drawn_in)).uniform_(0, 1, generator);
  TensorIterator iter = at::TensorIteratorConfig()
                            .add_output(self)
                            .add_owned_const_input(uniform)
                            .add_const_input(p)
                            .check_all_same_dtype(false)
                            .resize_outputs(false)
                            .build();
  const auto device = self.device().index();
  kernels::bernoulli_from(stream_of(iter), operands_of<3>(iter), runtime::error_record(device));
  runtime::check_device_errors(device);
}

void random_from_to_kernel(TensorIteratorBase& iter, uint64_t range, int64_t base, std::optional<Generator> generator) {
  fill_random(kernels::random_integers, iter, generator, range, base);
}

void random_full_64_bits_kernel(TensorIteratorBase& iter, std::optional<Generator> generator) {
  fill_random(kernels::random_integers, iter, generator, uint64_t(0), int64_t(0));
}

// random_() without bounds: 0 .. the largest integer the dtype represents exactly.
void random_kernel(TensorIteratorBase& iter, std::optional<Generator> generator) {
  const auto range = [&]() -> uint64_t {
    switch (iter.dtype(0)) {
      case c10::kBool:
        return 2;
      case c10::kByte:
        return uint64_t(1) << 8;
      case c10::kChar:
        return uint64_t(1) << 7;
      case c10::kShort:
        return uint64_t(1) << 15;
      case c10::kUInt16:
        return uint64_t(1) << 16;
      case c10::kInt:
        return uint64_t(1) << 31;
      case c10::kUInt32:
        return uint64_t(1) << 32;
      case c10::kLong:
        return uint64_t(1) << 63;
      case c10::kUInt64:
        return 0;
      case c10::kHalf:
        return (uint64_t(1) << 11) + 1;
      case c10::kBFloat16:
        return (uint64_t(1) << 8) + 1;
      case c10::kFloat:
        return (uint64_t(1) << 24) + 1;
      case c10::kDouble:
        return (uint64_t(1) << 53) + 1;
      default:
        TORCH_CHECK_NOT_IMPLEMENTED(false, "\"random_\" not implemented for '", iter.dtype(0), "'");
    }
  }();
  fill_random(kernels::random_integers, iter, generator, range, int64_t(0));
}

// Inverts the cumulative distribution: a category of probability zero spans nothing and is never hit.
void multinomial_with_replacement_kernel(Tensor& result, const Tensor& weights, int64_t samples,
                                         std::optional<Generator> generator) {
  const auto type = weights.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  const Tensor cumulative = at::cumsum(weights, -1, type);
  const Tensor total = cumulative.narrow(-1, cumulative.size(-1) - 1, 1);
  const Tensor valid = weights.ge(0).logical_and_(at::isfinite(weights)).all().logical_and_(total.gt(0).all());
  if (!valid.item<bool>()) {  // one look at the device; what is wrong is asked only then
    constexpr const char* kInvalid = "invalid multinomial distribution (";
    TORCH_CHECK(weights.ge(0).all().item<bool>(), kInvalid, "encountering probability entry < 0)");
    TORCH_CHECK(at::isfinite(weights).all().item<bool>(), kInvalid,
                "encountering probability entry = infinity or NaN)");
    TORCH_CHECK(false, kInvalid, "sum of probabilities <= 0)");
  }
  auto sizes = cumulative.sizes().vec();
  sizes.back() = samples;
  const Tensor targets = at::rand(sizes, generator, cumulative.options()).mul_(total);
  result.copy_(
      at::searchsorted(cumulative, targets, /*out_int32=*/false, /*right=*/true).clamp_max_(weights.size(-1) - 1));
}

}  // namespace

Tensor& randperm_generator_out(int64_t n, std::optional<Generator> generator, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  TORCH_CHECK(!generator.has_value() || out.device().type() == generator->device().type(), "Expected a '",
              out.device().type(), "' generator device but found '", generator->device().type(), "'");
  at::native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  if (n == 0) return out;
  // 63 random bits: two of n < 2^31 keys are equal with a probability below n^2 / 2^64, and then keep their order.
  const Tensor keys = at::empty({n}, out.options().dtype(c10::kLong)).random_(generator);
  return out.copy_(at::argsort(keys, /*stable=*/true, -1, false));
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  const auto mask_options = input.options().dtype(c10::kBool);
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, mask_options)};
  if (p == 1) return {at::zeros_like(input), at::zeros_like(input, mask_options)};
  Tensor mask = at::empty_like(input, mask_options);
  if (input.numel() == 0) return {at::empty_like(input), mask};
  bernoulli_scalar_kernel(mask, 1 - p, std::nullopt);
  return {aten::native_dropout_backward(input, mask, 1 / (1 - p)), mask};
}

Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask, double scale) {
  TORCH_CHECK(mask.scalar_type() == c10::kBool, "Mask should be Bool Scalar Type", mask.scalar_type());
  Tensor out = at::empty_like(grad_output);
  TensorIterator iter = at::TensorIteratorConfig()
                            .add_output(out)
                            .add_const_input(grad_output)
                            .add_const_input(mask)
                            .check_all_same_dtype(false)
                            .build();
  if (iter.numel() > 0) kernels::masked_scale(stream_of(iter), operands_of<3>(iter), scale);
  return out;
}

// Slopes of negative elements are drawn into `noise`, which is 1 elsewhere.
Tensor& rrelu_with_noise_out(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                             bool training, std::optional<Generator> generator, Tensor& out) {
  TORCH_CHECK(self.sizes() == noise.sizes(),
              "noise tensor shape must match self tensor shape. Got self.shape = ", self.sizes(),
              " noise.shape = ", noise.sizes());
  const double low = lower.toDouble(), high = upper.toDouble();
  TORCH_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  if (!training) return at::leaky_relu_out(out, self, (low + high) / 2);
  noise.uniform_(low, high, std::move(generator)).masked_fill_(self.le(0).logical_not_(), 1);
  return at::mul_out(out, self, noise);
}

Tensor rrelu_with_noise(const Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper,
                        bool training, std::optional<Generator> generator) {
  Tensor out = at::empty_like(self);
  return aten::rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), out);
}

Tensor& rrelu_with_noise_(Tensor& self, Tensor& noise, const at::Scalar& lower, const at::Scalar& upper, bool training,
                          std::optional<Generator> generator) {
  return aten::rrelu_with_noise_out(self, noise, lower, upper, training, std::move(generator), self);
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_scalar_stub, &mybackend::aten::bernoulli_scalar_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(bernoulli_tensor_stub, &mybackend::aten::bernoulli_tensor_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(cauchy_stub, &mybackend::aten::cauchy_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(exponential_stub, &mybackend::aten::exponential_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(geometric_stub, &mybackend::aten::geometric_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(log_normal_stub, &mybackend::aten::log_normal_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(multinomial_with_replacement_stub, &mybackend::aten::multinomial_with_replacement_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(normal_stub, &mybackend::aten::normal_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_from_to_stub, &mybackend::aten::random_from_to_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_full_64_bits_range_stub, &mybackend::aten::random_full_64_bits_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(random_stub, &mybackend::aten::random_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(uniform_stub, &mybackend::aten::uniform_kernel)
}  // namespace at::native
