#include "csrc/aten/reduction.h"

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"

namespace mybackend::aten {
namespace {

constexpr int kArrays = 3;     // input, output 0, output 1
constexpr int kMostDims = 64;  // what a tensor may have

struct Dimension {
  int64_t size;
  int64_t stride[kArrays];  // bytes
};

// Small input strides first; an input that does not move along a dimension is best read along another.
bool comes_before(const Dimension& a, const Dimension& b) {
  if ((a.stride[0] == 0) != (b.stride[0] == 0)) return b.stride[0] == 0;
  return a.stride[0] < b.stride[0];
}

class Group {
 public:
  void add(const Dimension& dimension) {
    if (dimension.size == 1) return;
    int at = count_++;
    while (at > 0 && comes_before(dimension, dimensions_[at - 1])) {
      dimensions_[at] = dimensions_[at - 1];
      at--;
    }
    dimensions_[at] = dimension;
  }

  // Joins neighbours along which every array moves on evenly.
  void merge() {
    int last = 0;
    for (int d = 1; d < count_; d++) {
      Dimension& inner = dimensions_[last];
      const Dimension& outer = dimensions_[d];
      bool even = true;
      for (int k = 0; k < kArrays; k++) even = even && outer.stride[k] == inner.stride[k] * inner.size;
      if (even)
        inner.size *= outer.size;
      else
        dimensions_[++last] = outer;
    }
    if (count_ > 0) count_ = last + 1;
    TORCH_CHECK(count_ <= kMaxDims, "mybackend: a reduction over ", count_,
                " dimensions that cannot be merged is not supported (at most ", kMaxDims, ")");
  }

  int count() const { return count_; }
  const Dimension& operator[](int d) const { return dimensions_[d]; }

 private:
  int count_ = 0;
  Dimension dimensions_[kMostDims];  // the first `count_`
};

void describe(Reduction& r, Group& reduced, Group& kept) {
  reduced.merge();
  kept.merge();
  r.reduced = reduced.count();
  r.kept = kept.count();
  r.count = r.outputs = 1;
  for (int d = 0; d < r.reduced; d++) {
    r.count *= r.reduced_size[d] = reduced[d].size;
    r.reduced_stride[d] = reduced[d].stride[0];
  }
  for (int d = 0; d < r.kept; d++) {
    r.outputs *= r.kept_size[d] = kept[d].size;
    r.kept_stride[d] = kept[d].stride[0];
    r.out_stride[0][d] = kept[d].stride[1];
    r.out_stride[1][d] = kept[d].stride[2];
  }
}

}  // namespace

Reduction reduction_of(const at::TensorIteratorBase& iter) {
  const int outputs = iter.noutputs();
  TORCH_INTERNAL_ASSERT(outputs <= 2 && iter.ntensors() == outputs + 1 && iter.ndim() <= kMostDims);
  Reduction r;
  r.in_dtype = to_dtype(iter.dtype(outputs));
  r.in = static_cast<const char*>(iter.data_ptr(outputs));
  for (int k = 0; k < 2; k++) {
    r.out_dtype[k] = to_dtype(iter.dtype(k < outputs ? k : 0));
    r.out[k] = k < outputs ? static_cast<char*>(iter.data_ptr(k)) : nullptr;
  }
  Group reduced, kept;
  for (int d = 0; d < iter.ndim(); d++) {
    const int64_t out0 = iter.strides(0)[d], out1 = outputs > 1 ? iter.strides(1)[d] : 0;
    (out0 == 0 ? reduced : kept).add({iter.shape()[d], {iter.strides(outputs)[d], out0, out1}});
  }
  describe(r, reduced, kept);
  return r;
}

Reduction reduction_over(const at::Tensor& self, std::optional<int64_t> dim, const at::Tensor& out0,
                         const at::Tensor& out1) {
  TORCH_INTERNAL_ASSERT(self.dim() <= kMostDims);
  Reduction r;
  const at::Tensor* outputs[2] = {&out0, &out1};
  r.in_dtype = to_dtype(self.scalar_type());
  r.in = static_cast<const char*>(self.const_data_ptr());
  for (int k = 0; k < 2; k++) {
    const bool given = outputs[k]->defined();
    r.out_dtype[k] = given ? to_dtype(outputs[k]->scalar_type()) : r.in_dtype;
    r.out[k] = given ? static_cast<char*>(outputs[k]->data_ptr()) : nullptr;
  }
  Group reduced, kept;
  for (int64_t d = 0; d < self.dim(); d++) {
    Dimension dimension{self.size(d), {self.stride(d) * self.element_size(), 0, 0}};
    const bool is_reduced = !dim || d == *dim;
    for (int k = 0; k < 2 && !is_reduced; k++) {
      if (!outputs[k]->defined()) continue;
      const int64_t at = outputs[k]->dim() < self.dim() && d > *dim ? d - 1 : d;
      dimension.stride[k + 1] = outputs[k]->stride(at) * outputs[k]->element_size();
    }
    (is_reduced ? reduced : kept).add(dimension);
  }
  describe(r, reduced, kept);
  return r;
}

char* DeviceWorkspace::take(void* self, int64_t bytes) {
  at::Tensor& memory = static_cast<DeviceWorkspace*>(self)->memory_;
  memory = empty_on_current_device({bytes}, c10::ScalarType::Byte);
  return static_cast<char*>(memory.data_ptr());
}

}  // namespace mybackend::aten
