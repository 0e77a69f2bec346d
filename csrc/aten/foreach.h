// What operators over lists of tensors have in common: the choice of route, and the lists as kernels take them.
//
// Lists that upstream's rules call fast (one device, dtype and layout, dense, nothing to promote) and whose dtype the
// kernels know take one launch; everything else goes tensor by tensor through upstream's slow functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <vector>

#include "csrc/device/api.h"
#include "csrc/kernels/tensor_lists.h"

namespace mybackend::aten::foreach {

// Sets of dtypes a kernel knows.
enum Kinds : unsigned { kReal = 1, kInteger = 2, kComplex = 4 };

// `promotes`: integers become floating point. Scalars: none, one, or one a tensor.
bool takes_fast_route(at::ArrayRef<at::TensorList> lists, at::ArrayRef<at::Scalar> scalars, bool promotes,
                      unsigned kinds);

// New tensors with the sizes and strides of `self`, which are dense.
std::vector<at::Tensor> empty_like_each(at::TensorList self);

// After writing to tensors behind autograd's back.
void bump_versions(at::TensorList tensors);

device::Stream stream_of(at::TensorList tensors);

// The first `written` lists are written to. Numbers of elements are those of the last list.
class Lists {
 public:
  Lists(std::initializer_list<at::TensorList> lists, size_t written);
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  operator const TensorLists&() const { return lists_; }

 private:
  TensorLists lists_;
  c10::SmallVector<int64_t, 64> numel_;
  c10::SmallVector<void*, 256> data_;
};

}  // namespace mybackend::aten::foreach
