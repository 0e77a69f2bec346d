// What operators over lists of tensors have in common: the choice of route, and the lists as kernels take them.
//
// Lists that upstream's rules call fast (one device, dtype and layout, dense, nothing to promote) and whose dtype the
// kernels know take one launch; everything else goes tensor by tensor through upstream's slow functions.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/util/SmallVector.h>

#include <initializer_list>
#include <vector>

#include "csrc/device/api.h"
#include "csrc/kernels/foreach.h"

namespace mybackend::aten::lists {

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

// Out of place and in place differ in where the result goes: `compute` writes it to the list it is given.
template <class Compute>
std::vector<at::Tensor> to_new(at::TensorList self, Compute compute) {
  std::vector<at::Tensor> out = empty_like_each(self);
  compute(at::TensorList(out));
  return out;
}

template <class Compute>
void in_place(at::TensorList self, Compute compute) {
  compute(self);
  bump_versions(self);
}

inline kernels::Number to_number(const at::Scalar& scalar) {
  if (scalar.isComplex()) return {scalar.toComplexDouble(), 0};
  return {scalar.toDouble(), scalar.isFloatingPoint() ? 0 : scalar.to<int64_t>()};
}

// One scalar for all tensors, or one for each.
class Held {
 public:
  explicit Held(at::ArrayRef<at::Scalar> scalars) {
    if (scalars.size() == 1) {
      numbers_.same = to_number(scalars[0]);
      return;
    }
    each_.reserve(scalars.size());
    for (const at::Scalar& scalar : scalars) each_.push_back(to_number(scalar));
    numbers_.each = each_.data();
  }
  operator const kernels::Numbers&() const { return numbers_; }

 private:
  kernels::Numbers numbers_;
  c10::SmallVector<kernels::Number, 16> each_;
};

}  // namespace mybackend::aten::lists
