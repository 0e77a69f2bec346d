// Range factories: arange, range, linspace, logspace, eye. Upstream's CPU entry points count the elements, check the
// arguments and end in stubs of ours.
#include <ATen/core/Tensor.h>
#include <ATen/native/RangeFactories.h>
#include <ATen/ops/arange_native.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/linspace_native.h>
#include <ATen/ops/pow.h>

#include <cmath>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/range.h"
#include "generated/range.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorIterator;
using c10::Scalar;

c10::ScalarType compute_type(const TensorIterator& iter) {
  return static_cast<c10::ScalarType>(compute_dtype(to_dtype(iter.dtype(0))));
}

Operands<3> with_two_scalars(const TensorIterator& iter, const Scalar& a, const Scalar& b) {
  return with_scalar(with_scalar(operands_of<1>(iter), a, compute_type(iter)), b, compute_type(iter));
}

device::Stream stream_of(const TensorIterator& iter) {
  return runtime::current_stream(iter.device(0).index());
}

void arange_kernel(TensorIterator& iter, const Scalar& start, const Scalar& /*steps*/, const Scalar& step) {
  if (iter.numel() > 0) kernels::arange(stream_of(iter), with_two_scalars(iter, start, step));
}

void linspace_kernel(TensorIterator& iter, const Scalar& start, const Scalar& end, int64_t steps) {
  if (iter.numel() > 0) kernels::linspace(stream_of(iter), with_two_scalars(iter, start, end), steps);
}

}  // namespace

Tensor& arange_start_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  return at::native::arange_out(start, end, step, out);
}

Tensor& linspace_out(const Scalar& start, const Scalar& end, int64_t steps, Tensor& out) {
  return at::native::linspace_out(start, end, steps, out);
}

// base ^ linspace(start, end), computed in at least single precision.
Tensor& logspace_out(const Scalar& start, const Scalar& end, int64_t steps, double base, Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (steps == 0) return out;
  const auto type = out.is_complex() ? out.scalar_type()
                    : out.scalar_type() == c10::kDouble || c10::isIntegralType(out.scalar_type(), false) ? c10::kDouble
                                                                                                         : c10::kFloat;
  return out.copy_(at::pow(Scalar(base), at::linspace(start, end, steps, out.options().dtype(type))));
}

// The range includes its end, unlike arange's.
Tensor& range_out(const Scalar& start, const Scalar& end, const Scalar& step, Tensor& out) {
  const double first = start.toDouble(), last = end.toDouble(), stride = step.toDouble();
  TORCH_CHECK(stride > 0 || stride < 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(first) && std::isfinite(last), "unsupported range: ", first, " -> ", last);
  TORCH_CHECK((stride > 0 && last >= first) || (stride < 0 && last <= first),
              "upper bound and lower bound inconsistent with step sign");
  const int64_t count = static_cast<int64_t>((last - first) / stride) + 1;
  if (out.numel() != count) out.resize_({count});
  Tensor dense = out.is_contiguous() ? out : out.contiguous();
  TensorIterator iter = TensorIterator::borrowing_nullary_op(dense);
  arange_kernel(iter, start, count, step);
  if (!dense.is_same(out)) out.copy_(dense);
  return out;
}

Tensor& eye_out(int64_t n, Tensor& out) {
  return eye_m_out(n, n, out);
}

Tensor& eye_m_out(int64_t n, int64_t m, Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  out.resize_({n, m});
  if (out.numel() == 0) return out;
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(arange_stub, &mybackend::aten::arange_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(linspace_stub, &mybackend::aten::linspace_kernel)
}  // namespace at::native
