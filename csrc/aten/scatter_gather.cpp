// gather, the scatter family and scatter_reduce, along one dimension. Upstream checks shapes and dtypes, copies `self`
// to the output and divides for "mean"; the stubs only move elements.
#include <ATen/native/ReductionType.h>
#include <ATen/native/TensorAdvancedIndexing.h>

#include "csrc/aten/index_operands.h"
#include "csrc/aten/iterator.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::native::ReductionType;
using kernels::Update;

Update update_of(ReductionType reduction) {
  switch (reduction) {
    case ReductionType::SUM:
    case ReductionType::MEAN:
      return Update::Add;
    case ReductionType::PROD:
      return Update::Multiply;
    case ReductionType::MAX:
      return Update::Maximum;
    default:
      return Update::Minimum;
  }
}

// Walks are by int64; a gather reads int32 as it is.
Tensor as_long(const Tensor& index) {
  return index.scalar_type() == at::kLong ? index : index.to(at::kLong);
}

void gather(const Tensor& result, const Tensor& self, int64_t dim, const Tensor& index) {
  space_along(self, dim, index, &result, false).gather(result.device());
}

void scatter_tensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Update update) {
  const Tensor positions = as_long(index);
  space_along(self, dim, positions, &src, true).scatter(self.device(), update);
}

void scatter_scalar(const Tensor& self, int64_t dim, const Tensor& index, const c10::Scalar& value, Update update) {
  const Tensor positions = as_long(index);
  IndexSpace space = space_along(self, dim, positions, nullptr, true);
  put_scalar(space.operands().immediate, value, self.scalar_type());
  space.scatter(self.device(), update);
}

void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_tensor(self, dim, index, src, Update::Assign);
}

void scatter_fill(const Tensor& self, int64_t dim, const Tensor& index, const c10::Scalar& value) {
  scatter_scalar(self, dim, index, value, Update::Assign);
}

void scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  scatter_tensor(self, dim, index, src, Update::Add);
}

void scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                    const ReductionType& reduction) {
  scatter_tensor(self, dim, index, src, update_of(reduction));
}

void scatter_scalar_reduce(const Tensor& self, int64_t dim, const Tensor& index, const c10::Scalar& value,
                           const ReductionType& reduction) {
  scatter_scalar(self, dim, index, value, update_of(reduction));
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(gather_stub, &mybackend::aten::gather)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_stub, &mybackend::aten::scatter)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_fill_stub, &mybackend::aten::scatter_fill)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_add_stub, &mybackend::aten::scatter_add)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_reduce_stub, &mybackend::aten::scatter_reduce)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_scalar_reduce_stub, &mybackend::aten::scatter_scalar_reduce)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_reduce_two_stub, &mybackend::aten::scatter_reduce)
}  // namespace at::native
