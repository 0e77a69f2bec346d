// segment_reduce: the stubs behind upstream's checks. Lengths become offsets first.
#include <ATen/core/Tensor.h>
#include <ATen/native/SegmentReduce.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/zeros.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/kernels/segment_reduce.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten {
namespace {

using at::Scalar;
using at::Tensor;
using at::native::ReductionType;

Tensor offsets_of(const Tensor& lengths) {
  return at::constant_pad_nd(at::cumsum(lengths, -1, at::kLong), {1, 0}, 0);
}

// The arguments of a kernel, and the contiguous tensors they point into.
struct Segments {
  Tensor data, offsets;
  kernels::SegmentReduce args{};

  Segments(ReductionType reduction, const Tensor& data_in, const Tensor& offsets_in, int64_t axis,
           const std::optional<Scalar>& initial)
      : data(data_in.contiguous()), offsets(offsets_in.to(at::kLong).contiguous()) {
    args.dtype = to_dtype(data.scalar_type());
    args.op = [&] {
      switch (reduction) {
        case ReductionType::MAX:
          return kernels::SegmentOp::Max;
        case ReductionType::MEAN:
          return kernels::SegmentOp::Mean;
        case ReductionType::MIN:
          return kernels::SegmentOp::Min;
        case ReductionType::PROD:
          return kernels::SegmentOp::Prod;
        default:
          return kernels::SegmentOp::Sum;
      }
    }();
    args.outer = c10::multiply_integers(data.sizes().slice(0, axis));
    args.length = data.size(axis);
    args.inner = c10::multiply_integers(data.sizes().slice(axis + 1));
    args.segments = offsets.size(axis) - 1;
    args.has_initial = initial.has_value();
    args.initial = initial.has_value() ? initial->toDouble() : 0;
    args.offsets = offsets.const_data_ptr<int64_t>();
    args.data = data.const_data_ptr();
  }

  device::Stream stream() const { return runtime::current_stream(data.device().index()); }
};

Tensor by_offsets(ReductionType reduction, const Tensor& data, const Tensor& offsets, int64_t axis,
                  const std::optional<Scalar>& initial) {
  const Segments segments(reduction, data, offsets, axis, initial);
  c10::DimVector sizes(data.sizes());
  sizes[axis] = segments.args.segments;
  Tensor out = empty_on_current_device(sizes, data.scalar_type());
  if (out.numel() > 0) kernels::segment_reduce(segments.stream(), segments.args, out.mutable_data_ptr());
  return out;
}

Tensor by_lengths(ReductionType reduction, const Tensor& data, const Tensor& lengths, int64_t axis,
                  const std::optional<Scalar>& initial) {
  return by_offsets(reduction, data, offsets_of(lengths), axis, initial);
}

Tensor backward_by_offsets(const Tensor& grad_in, const Tensor& output_in, const Tensor& data, ReductionType reduction,
                           const Tensor& offsets, int64_t axis, const std::optional<Scalar>& initial) {
  const Segments segments(reduction, data, offsets, axis, initial);
  const Tensor grad = grad_in.contiguous(), output = output_in.contiguous();
  Tensor result = at::zeros(data.sizes(), grad.options());
  if (output.numel() > 0)
    kernels::segment_reduce_backward(segments.stream(), segments.args, output.const_data_ptr(), grad.const_data_ptr(),
                                     result.mutable_data_ptr());
  return result;
}

Tensor backward_by_lengths(const Tensor& grad, const Tensor& output, const Tensor& data, ReductionType reduction,
                           const Tensor& lengths, int64_t axis, const std::optional<Scalar>& initial) {
  return backward_by_offsets(grad, output, data, reduction, offsets_of(lengths), axis, initial);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_backward_stub, &mybackend::aten::backward_by_lengths)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_lengths_stub, &mybackend::aten::by_lengths)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_backward_stub, &mybackend::aten::backward_by_offsets)
REGISTER_PRIVATEUSE1_DISPATCH(_segment_reduce_offsets_stub, &mybackend::aten::by_offsets)
}  // namespace at::native
