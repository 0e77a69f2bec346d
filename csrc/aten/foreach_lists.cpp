#include <ATen/native/ForeachUtils.h>

#include "csrc/aten/foreach.h"
#include "csrc/aten/iterator.h"
#include "csrc/aten/structured.h"
#include "csrc/runtime/stream.h"

namespace mybackend::aten::lists {

using at::Tensor;
using at::TensorList;

namespace {

unsigned kind_of(c10::ScalarType type) {
  switch (type) {
    case c10::kHalf:
    case c10::kBFloat16:
    case c10::kFloat:
    case c10::kDouble:
      return kReal;
    case c10::kByte:
    case c10::kChar:
    case c10::kShort:
    case c10::kInt:
    case c10::kLong:
      return kInteger;
    case c10::kComplexHalf:
    case c10::kComplexFloat:
    case c10::kComplexDouble:
      return kComplex;
    default:
      return 0;
  }
}

}  // namespace

bool takes_fast_route(at::ArrayRef<TensorList> lists, at::ArrayRef<at::Scalar> scalars, bool promotes, unsigned kinds) {
  const Tensor& first = lists[0][0];
  // A list that begins on the CPU comes here when another one is on the device.
  if (!first.is_privateuseone() || (kind_of(first.scalar_type()) & kinds) == 0) return false;
  // A floating-point list promotes with no real scalar, which spares a look at every pair.
  if (kind_of(first.scalar_type()) == kReal) {
    bool real = true;
    for (const at::Scalar& scalar : scalars) real = real && !scalar.isComplex();
    if (real) return at::native::can_use_fast_route(lists, {}, promotes);
  }
  return at::native::can_use_fast_route(lists, scalars, promotes);
}

std::vector<Tensor> empty_like_each(TensorList self) {
  std::vector<Tensor> out;
  out.reserve(self.size());
  for (const Tensor& tensor : self)
    out.push_back(structured::create_output(tensor.sizes(), tensor.strides(), tensor.options()));
  return out;
}

void bump_versions(TensorList tensors) {
  for (const Tensor& tensor : tensors) tensor.unsafeGetTensorImpl()->bump_version();
}

device::Stream stream_of(TensorList tensors) {
  return runtime::current_stream(tensors[0].device().index());
}

Lists::Lists(std::initializer_list<TensorList> lists, size_t written) {
  const TensorList& last = *(lists.end() - 1);
  const size_t count = last.size();
  numel_.reserve(count);
  for (const Tensor& tensor : last) numel_.push_back(tensor.numel());
  data_.reserve(count * lists.size());  // addresses into it are kept
  size_t k = 0;
  for (const TensorList& list : lists) {
    lists_.data[k] = data_.data() + data_.size();
    lists_.dtype[k] = to_dtype(list[0].scalar_type());
    for (const Tensor& tensor : list)
      data_.push_back(k < written ? tensor.mutable_data_ptr() : const_cast<void*>(tensor.const_data_ptr()));
    k++;
  }
  lists_.count = int64_t(count);
  lists_.numel = numel_.data();
}

}  // namespace mybackend::aten::lists
