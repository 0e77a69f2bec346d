// Embeddings: the gradient of the weights, renormalization, and embedding_bag.
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "csrc/aten/compute_type.h"
#include "csrc/aten/factories.h"
#include "csrc/kernels/embedding.h"
#include "csrc/runtime/errors.h"
#include "generated/embedding.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.device().index());
}

void check_indices(const Tensor& indices, const char* name) {
  const auto type = indices.scalar_type();
  TORCH_CHECK(type == at::kLong || type == at::kInt, "Expected tensor for argument '", name,
              "' to have one of the following scalar types: Long, Int; but got ", indices.toString(),
              " instead (while checking arguments for embedding)");
}

kernels::EmbeddingIndices indices_of(const Tensor& indices, int64_t padding) {
  return {indices.const_data_ptr(), to_dtype(indices.scalar_type()), indices.numel(), padding};
}

const void* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

// The gradient of `rows` weights; `source` and `factor` as in kernels::embedding_backward, undefined for none.
Tensor weight_gradient(const Tensor& grad, const Tensor& indices, const Tensor& source, const Tensor& factor,
                       int64_t rows, int64_t padding, bool scale_by_frequency) {
  const int64_t width = grad.size(-1);
  const at::ScalarType compute = compute_type(grad.scalar_type());
  Tensor result = empty_on_current_device({rows, width}, compute);
  const Tensor counts = scale_by_frequency ? at::zeros({rows}, grad.options().dtype(at::kLong)) : Tensor();
  kernels::embedding_backward(stream_of(grad), indices_of(indices, padding), rows, width, to_dtype(grad.scalar_type()),
                              grad.const_data_ptr(), data_or_null(source), data_or_null(factor),
                              counts.defined() ? counts.mutable_data_ptr<int64_t>() : nullptr,
                              result.mutable_data_ptr(), runtime::error_record(grad.device().index()));
  runtime::check_device_errors(grad.device().index());
  return result.to(grad.scalar_type());
}

kernels::BagMode bag_mode(int64_t mode) {
  TORCH_CHECK(mode >= 0 && mode <= 2, "embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got ", mode);
  return static_cast<kernels::BagMode>(mode);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag_forward(const Tensor& weight_in, const Tensor& indices_in,
                                                                 const Tensor& offsets_in, int64_t mode_in,
                                                                 const OptionalTensor& per_sample_weights,
                                                                 bool include_last_offset, int64_t padding_idx) {
  TORCH_CHECK(indices_in.dim() == 1 || indices_in.dim() == 2,
              "input has to be a 1D or 2D Tensor, but got Tensor of dimension ", indices_in.dim());
  if (indices_in.dim() == 1)
    TORCH_CHECK(offsets_in.dim() == 1, "offsets has to be a 1D Tensor, but got Tensor of dimension ", offsets_in.dim());
  TORCH_CHECK(weight_in.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension ", weight_in.dim());
  check_indices(indices_in, "indices");
  check_indices(offsets_in, "offsets");
  const kernels::BagMode mode = bag_mode(mode_in);
  const int64_t rows = weight_in.size(0), width = weight_in.size(1);
  if (padding_idx < 0 && padding_idx != -1) padding_idx += rows;
  TORCH_CHECK(padding_idx >= -1 && padding_idx < rows, "padding_idx must be within the number of embeddings, -", rows,
              " through ", rows - 1, ", but got ", padding_idx);
  const at::ScalarType index_type =
      indices_in.scalar_type() == offsets_in.scalar_type() ? indices_in.scalar_type() : at::kLong;
  const Tensor weight = weight_in.contiguous(), indices = indices_in.to(index_type).contiguous();
  const Tensor offsets = offsets_in.to(index_type).contiguous();
  Tensor factor;
  if (per_sample_weights && per_sample_weights->defined()) {
    TORCH_CHECK(mode == kernels::BagMode::Sum,
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
                "(got mode='",
                mode == kernels::BagMode::Mean ? "mean" : "max", "'). Please open a feature request on GitHub.");
    TORCH_CHECK(per_sample_weights->scalar_type() == weight.scalar_type(), "expected scalar type ",
                weight.scalar_type(), " but found ", per_sample_weights->scalar_type());
    TORCH_CHECK(per_sample_weights->numel() == indices.numel(), "expected per_sample_weights to have ", indices.numel(),
                " elements, got ", per_sample_weights->numel());
    factor = per_sample_weights->contiguous();
  }
  int64_t bags = offsets.size(0);
  if (include_last_offset) {
    TORCH_CHECK(bags >= 1, "include_last_offset: number of offset should be at least 1");
    bags--;
  }
  const bool max = mode == kernels::BagMode::Max;
  Tensor out = empty_on_current_device({bags, width}, weight.scalar_type());
  Tensor offset2bag = at::zeros({indices.numel()}, indices.options());
  Tensor bag_size = at::zeros({offsets.size(0)}, indices.options());
  Tensor max_indices = empty_on_current_device({max ? bags : 0, max ? width : 0}, index_type);
  if (!max) max_indices = max_indices.view({0});
  kernels::embedding_bag(stream_of(weight),
                         {indices_of(indices, padding_idx), offsets.const_data_ptr(), bags, include_last_offset, mode},
                         to_dtype(weight.scalar_type()), rows, width, weight.const_data_ptr(), data_or_null(factor),
                         out.mutable_data_ptr(), offset2bag.mutable_data_ptr(), bag_size.mutable_data_ptr(),
                         max_indices.mutable_data_ptr(), runtime::error_record(weight.device().index()));
  runtime::check_device_errors(weight.device().index());
  return {std::move(out), std::move(offset2bag), std::move(bag_size), std::move(max_indices)};
}

}  // namespace

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  check_indices(indices, "indices");
  const int64_t width = grad_output.size(-1);
  const Tensor grad = grad_output.contiguous().view({indices.numel(), width});
  return weight_gradient(grad, indices.contiguous(), {}, {}, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type) {
  TORCH_CHECK(self.dim() == 2, "Expected 2-dimensional tensor, but got ", self.dim(),
              "-dimensional tensor for argument #1 'self' (while checking arguments for embedding_renorm_)");
  check_indices(indices, "indices");
  if (indices.numel() == 0) return self;
  const Tensor used = at::zeros({self.size(0)}, self.options().dtype(at::kBool));
  used.index_fill_(0, indices.reshape(-1).to(at::kLong), true);
  const Tensor weight = self.contiguous();
  kernels::embedding_renorm(stream_of(self), to_dtype(self.scalar_type()), self.size(0), self.size(1),
                            used.const_data_ptr<bool>(), max_norm, norm_type, weight.mutable_data_ptr());
  if (!weight.is_same(self)) self.copy_(weight);
  return self;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _embedding_bag(const Tensor& weight, const Tensor& indices,
                                                          const Tensor& offsets, bool /*scale_grad_by_freq*/,
                                                          int64_t mode, bool /*sparse*/,
                                                          const OptionalTensor& per_sample_weights,
                                                          bool include_last_offset, int64_t padding_idx) {
  return embedding_bag_forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _embedding_bag_forward_only(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool /*scale_grad_by_freq*/, int64_t mode,
    bool /*sparse*/, const OptionalTensor& per_sample_weights, bool include_last_offset, int64_t padding_idx) {
  return embedding_bag_forward(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx);
}

Tensor _embedding_bag_dense_backward(const Tensor& grad_in, const Tensor& indices_in, const Tensor& offset2bag_in,
                                     const Tensor& bag_size_in, const Tensor& maximum_indices, int64_t num_weights,
                                     bool scale_grad_by_freq, int64_t mode_in, const OptionalTensor& per_sample_weights,
                                     int64_t padding_idx) {
  const kernels::BagMode mode = bag_mode(mode_in);
  const Tensor grad = grad_in.contiguous(), indices = indices_in.contiguous();
  const Tensor source = offset2bag_in.to(indices.scalar_type()).contiguous();
  const Tensor bag_size = bag_size_in.to(indices.scalar_type()).contiguous();
  const at::ScalarType compute = compute_type(grad.scalar_type());
  if (mode == kernels::BagMode::Max) {
    Tensor result = empty_on_current_device({num_weights, grad.size(1)}, compute);
    const Tensor winners = maximum_indices.to(indices.scalar_type()).contiguous();
    kernels::embedding_bag_max_backward(stream_of(grad), to_dtype(grad.scalar_type()), to_dtype(indices.scalar_type()),
                                        grad.size(0), num_weights, grad.size(1), grad.const_data_ptr(),
                                        winners.const_data_ptr(), bag_size.const_data_ptr(), result.mutable_data_ptr());
    return result.to(grad.scalar_type());
  }
  Tensor factor;
  if (mode == kernels::BagMode::Mean) factor = bag_size.to(compute).reciprocal_().index_select(0, source);
  if (per_sample_weights && per_sample_weights->defined()) {
    const Tensor weights = per_sample_weights->to(compute);
    factor = factor.defined() ? factor.mul(weights) : weights.contiguous();
  }
  return weight_gradient(grad, indices, source, factor, num_weights, padding_idx, scale_grad_by_freq);
}

Tensor _embedding_bag_per_sample_weights_backward(const Tensor& grad_in, const Tensor& weight_in,
                                                  const Tensor& indices_in, const Tensor& /*offsets*/,
                                                  const Tensor& offset2bag, int64_t mode, int64_t padding_idx) {
  TORCH_CHECK(bag_mode(mode) == kernels::BagMode::Sum,
              "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
  const Tensor grad = grad_in.contiguous(), weight = weight_in.contiguous(), indices = indices_in.contiguous();
  const Tensor source = offset2bag.to(indices.scalar_type()).contiguous();
  Tensor out = empty_on_current_device({indices.numel()}, grad.scalar_type());
  kernels::embedding_bag_factor_backward(
      stream_of(grad), indices_of(indices, padding_idx), to_dtype(grad.scalar_type()), weight.size(0), weight.size(1),
      grad.const_data_ptr(), weight.const_data_ptr(), source.const_data_ptr(), out.mutable_data_ptr());
  return out;
}

}  // namespace mybackend::aten
