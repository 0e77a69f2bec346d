// Comparisons. Operands of other types are first rounded to the common one, as upstream does: 0.1 equals the half that
// is nearest to it.
#include <ATen/native/BinaryOps.h>
#include <ATen/ops/empty.h>

#include "csrc/aten/pointwise.h"
#include "csrc/kernels/binary.h"
#include "csrc/kernels/copy.h"

namespace mybackend::aten {
namespace {

// Replaces operand k by a dense copy in the common type; returns what keeps the copy alive until the launch.
at::Tensor round_operand(const at::TensorIteratorBase& iter, Operands<3>& o, int k) {
  const auto dtype = static_cast<c10::ScalarType>(o.compute);
  if (o.data[k] == nullptr) {
    hold(iter.tensor(k).item(), o.compute, o.immediate[k]);
    o.dtype[k] = o.compute;
    return {};
  }
  const at::Tensor rounded = at::empty({o.numel}, iter.tensor(k).options().dtype(dtype));
  Operands<2> copy = pick<2>(o, {k, k});
  copy.dtype[0] = o.compute;
  copy.data[0] = static_cast<char*>(rounded.mutable_data_ptr());
  copy.contiguous[0] = true;
  int64_t dense = size_of(o.compute);
  for (int d = 0; d < o.ndim; d++) {
    copy.strides[0][d] = dense;
    dense *= o.sizes[d];
  }
  kernels::copy(stream_of(iter), copy, false, false);
  o.dtype[k] = o.compute;
  o.data[k] = copy.data[0];
  o.contiguous[k] = true;
  std::memcpy(o.strides[k], copy.strides[0], sizeof(copy.strides[0]));
  return rounded;
}

template <auto& kernel>
void run_comparison(at::TensorIteratorBase& iter) {
  Operands<3> o = operands_of<3>(iter);
  at::Tensor rounded[3];
  if (o.compute == DType::Half || o.compute == DType::BFloat16) {
    for (int k = 1; k < 3; k++)
      if (o.dtype[k] != o.compute) [[unlikely]]
        rounded[k] = round_operand(iter, o, k);
  }
  kernel(stream_of(iter), o);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
#define REGISTER_COMPARISON(name) \
  REGISTER_PRIVATEUSE1_DISPATCH(name##_stub, &mybackend::aten::run_comparison<mybackend::kernels::name>)
MB_BINARY_COMPARISON(REGISTER_COMPARISON)
#undef REGISTER_COMPARISON
}  // namespace at::native
