// What nn.TransformerEncoderLayer and nn.MultiheadAttention call in evaluation: attention with its projections.
//
// Without a mask and without weights to return it is the fused attention; otherwise the scores are kept. Checks are
// upstream's.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_masked_softmax.h>
#include <ATen/ops/_softmax.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>

#include "generated/transformer.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;
using Triple = std::tuple<Tensor, Tensor, Tensor>;

// (batch, length, 3 x width) as query, key and value of shape (batch, heads, length, width / heads).
Triple heads_of(const Tensor& qkv, int64_t heads) {
  const int64_t batch = qkv.size(0), length = qkv.size(1), width = qkv.size(2) / 3;
  const Tensor split = qkv.view({batch, length, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
  return {split.select(0, 0), split.select(0, 1), split.select(0, 2)};
}

Tensor project(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& weight, const Tensor& bias) {
  if (query.is_same(key) && key.is_same(value)) return at::linear(query, weight, bias);
  const int64_t width = query.size(2);
  const auto part = [&](const Tensor& x, int64_t k) {
    return at::linear(x, weight.narrow(0, k * width, width), bias.narrow(0, k * width, width));
  };
  return at::cat({part(query, 0), part(key, 1), part(value, 2)}, 2);
}

void check(const Tensor& query, const Tensor& key, const Tensor& value, int64_t width, int64_t heads,
           const Tensor& weight, const Tensor& bias) {
  TORCH_CHECK(query.dim() == 3, "expected 3-D `query`, got ", query.dim(), "-D tensor");
  TORCH_CHECK(query.size(2) == width, "passed-in embed_dim ", width, " didn't match last dim of query ", query.size(2));
  TORCH_CHECK(key.dim() == 3, "expected 3-D `key`, got ", key.dim(), "-D tensor");
  TORCH_CHECK(value.dim() == 3, "expected 3-D `value`, got ", value.dim(), "-D tensor");
  TORCH_CHECK(query.sizes() == key.sizes() && key.sizes() == value.sizes(),
              "expected `query`/`key`/`value` shapes to match");
  TORCH_CHECK(weight.dim() == 2, "expected 2-D `qkv_weight`, got ", weight.dim(), "-D tensor");
  TORCH_CHECK(weight.size(0) == 3 * width, "expected `qkv_weight` first dim to be 3x embed_dim");
  TORCH_CHECK(weight.size(1) == width, "expected `qkv_weight` second dim to be embed_Dim");
  TORCH_CHECK(bias.dim() == 1, "expected 1-D `qkv_bias`, got ", bias.dim(), "-D tensor");
  TORCH_CHECK(bias.size(0) == 3 * width, "expected `qkv_bias` first dim and first dim of query to be equal");
  TORCH_CHECK(heads > 0 && width % heads == 0, "`embed_dim` must divide evenly by `num_heads`");
}

}  // namespace

Triple _transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % 3 == 0, "expected 3-D `qkv` of 3 x width columns, got ", qkv.sizes());
  TORCH_CHECK(num_heads > 0 && qkv.size(2) / 3 % num_heads == 0, "expected the width to divide evenly by `num_heads`");
  const auto [query, key, value] = heads_of(qkv.add(qkv_bias), num_heads);
  const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
  return {query.mul(scale).contiguous(), key.contiguous(), value.contiguous()};
}

std::tuple<Tensor, Tensor> _native_multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        int64_t embed_dim, int64_t num_head, const Tensor& qkv_weight,
                                                        const Tensor& qkv_bias, const Tensor& proj_weight,
                                                        const Tensor& proj_bias, const OptionalTensor& mask,
                                                        bool need_weights, bool average_attn_weights,
                                                        std::optional<int64_t> mask_type) {
  check(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias);
  const int64_t batch = query.size(0), length = query.size(1), head_width = embed_dim / num_head;
  const auto [q, k, v] = heads_of(project(query, key, value, qkv_weight, qkv_bias), num_head);
  const bool masked = mask.has_value() && mask->defined();
  Tensor context, weights;
  if (masked || need_weights) {
    const auto batched = [&](const Tensor& x) { return x.reshape({batch * num_head, length, head_width}); };
    const Tensor scaled = q.mul(1.0 / std::sqrt(static_cast<double>(head_width)));
    const Tensor scores = at::bmm(batched(scaled), batched(k).transpose(1, 2)).view({batch, num_head, length, length});
    weights = masked ? at::_masked_softmax(scores, mask->to(at::kBool), 3, mask_type) : at::_softmax(scores, 3, false);
    context = at::bmm(weights.view({batch * num_head, length, length}), batched(v))
                  .view({batch, num_head, length, head_width});
    weights = !need_weights ? Tensor() : average_attn_weights ? weights.mean(1) : weights;
  } else {
    context = at::scaled_dot_product_attention(q, k, v);
  }
  const Tensor joined = context.transpose(1, 2).reshape({batch, length, embed_dim});
  return {at::linear(joined, proj_weight, proj_bias), std::move(weights)};
}

// This device has no nested tensors. nn.TransformerEncoder asks whether a padded batch may become one, and keeps the
// padding where it may not.
bool _nested_tensor_from_mask_left_aligned(const Tensor& /*t*/, const Tensor& /*mask*/) {
  return false;
}

}  // namespace mybackend::aten
