// Builds kernels::IndexOperands: the description that every indexing operator hands to gather_elements or
// scatter_elements.
#pragma once

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorIterator.h>
#include <c10/util/SmallVector.h>

#include "csrc/device/errors.h"
#include "csrc/kernels/index.h"

namespace mybackend::aten {

struct IndexDimension {
  int64_t size;
  int64_t to = 0;  // strides in bytes
  int64_t from = 0;
  std::array<int64_t, kernels::kMaxIndices> index{};
  bool fiber = true;  // positions that differ here never meet in the indexed array
};

class IndexSpace {
 public:
  IndexSpace(at::ScalarType dtype, int index_arrays);

  // Innermost dimension first.
  void add(const IndexDimension& dimension) { dimensions_.push_back(dimension); }
  kernels::IndexOperands& operands() { return o_; }
  void set_index(int k, const at::TensorBase& index, int64_t indexed_size, int64_t indexed_stride);
  void report_as(device::ErrorCode code, int64_t dimension, at::Device device);

  // Merges dimensions, puts fibers first if `fibers_first`, and launches on the device's current stream.
  void gather(at::Device device);
  void scatter(at::Device device, kernels::Update update);

 private:
  void finish(bool fibers_first);
  at::Tensor combine_indices(at::Device device);

  kernels::IndexOperands o_;
  c10::SmallVector<IndexDimension, 8> dimensions_;
};

// Writes `value` as an element of `dtype`.
void put_scalar(char* to, const c10::Scalar& value, at::ScalarType dtype);

// The space of a gather or scatter along `dim`: it has the sizes of `index`; `indexed` is walked by the index in `dim`.
IndexSpace space_along(const at::Tensor& indexed, int64_t dim, const at::Tensor& index, const at::Tensor* other,
                       bool indexed_is_to);

}  // namespace mybackend::aten
