// Entry points of csrc/kernels/embedding*.cu. All arrays are contiguous; weights have `rows` rows of `width` elements.
// Indices are int64 or int32. An index outside the weights is reported and left out.
#pragma once

#include "csrc/device/dtype.h"
#include "csrc/device/kernel.h"

namespace mybackend::kernels {
using device::ErrorRecord;
using device::Stream;

struct EmbeddingIndices {
  const void* data;
  DType dtype;
  int64_t count;
  int64_t padding;  // an index that takes no part; -1: none
};

// grad_weight[index[i]] = sum over i of factor[i] * grad[source[i]], every row of grad_weight written. `dtype` is that
// of `grad`; grad_weight and factor are of its compute type. Without `source` the row is i, without `factor` it is one.
// `counts` (int64, one a row of the weights, zero) or nullptr: divides a row by the number of its indices.
MB_DECLARE_KERNEL(embedding_backward, void(Stream stream, const EmbeddingIndices& indices, int64_t rows, int64_t width,
                                           DType dtype, const void* grad, const void* source, const void* factor,
                                           int64_t* counts, void* grad_weight, ErrorRecord* errors));

// Scales the rows with used[row] set whose p-norm exceeds max_norm down to it.
MB_DECLARE_KERNEL(embedding_renorm, void(Stream stream, DType dtype, int64_t rows, int64_t width, const bool* used,
                                         double max_norm, double p, void* weight));

enum class BagMode : int { Sum = 0, Mean = 1, Max = 2 };

struct EmbeddingBags {
  EmbeddingIndices indices;
  const void* offsets;  // of the dtype of the indices; where each bag begins
  int64_t bags;
  bool include_last_offset;
  BagMode mode;
};

// Reduces the rows of each bag. Writes offset2bag (one an index), bag_size (without padding) and, for Max, the winning
// indices (bags x width), all of the dtype of the indices. `factor` (of `dtype`) or nullptr: per-sample weights.
MB_DECLARE_KERNEL(embedding_bag, void(Stream stream, const EmbeddingBags& what, DType dtype, int64_t rows,
                                      int64_t width, const void* weight, const void* factor, void* out,
                                      void* offset2bag, void* bag_size, void* max_indices, ErrorRecord* errors));

// grad_weight[winner[bag, d], d] = sum over bags of grad[bag, d], every row written; empty bags give nothing.
MB_DECLARE_KERNEL(embedding_bag_max_backward,
                  void(Stream stream, DType dtype, DType index_dtype, int64_t bags, int64_t rows, int64_t width,
                       const void* grad, const void* winner, const void* bag_size, void* grad_weight));

// out[i] = grad[offset2bag[i]] . weight[index[i]], zero for padding.
MB_DECLARE_KERNEL(embedding_bag_factor_backward,
                  void(Stream stream, const EmbeddingIndices& indices, DType dtype, int64_t rows, int64_t width,
                       const void* grad, const void* weight, const void* offset2bag, void* out));

}  // namespace mybackend::kernels
