// scaled_dot_product_attention: which backend serves a call, and the fused one, forward and backward.
//
// Upstream's scaled_dot_product_attention asks _fused_sdp_choice_stub and calls the "overrideable" operator when told
// so; anything the fused kernels do not take goes to upstream's decomposition ("math"). Forcing a fused backend by
// torch.nn.attention.sdpa_kernel means this one, whatever its name; forcing MATH means the decomposition.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "csrc/aten/factories.h"
#include "csrc/aten/iterator.h"
#include "csrc/kernels/attention.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/generator.h"
#include "generated/attention.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

constexpr int64_t kWidestHead = 256;
constexpr uint64_t kWordsPerWeight = 4;  // one Philox block serves four neighbouring weights

// Whether the fused kernels take a call. Compilers ask with sizes that are symbols: what is known of them decides, and
// becomes a guard of the compiled code; what cannot be known leaves the call to the decomposition.
bool fits(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& mask, bool enable_gqa) {
  const auto equal = [](const c10::SymInt& a, const c10::SymInt& b) { return TORCH_GUARD_OR_FALSE(a.sym_eq(b)); };
  const auto type = query.scalar_type();
  if (type != at::kFloat && type != at::kHalf && type != at::kBFloat16) return false;
  if (key.scalar_type() != type || value.scalar_type() != type) return false;
  if (query.is_nested() || key.is_nested() || value.is_nested()) return false;
  if (query.dim() != 4 || key.dim() != 4 || value.dim() != 4) return false;
  for (const Tensor* tensor : {&query, &key, &value})
    if (equal(tensor->sym_numel(), 0)) return false;
  const c10::SymInt batch = query.sym_size(0), heads = query.sym_size(1), kv_heads = key.sym_size(1);
  if (!equal(key.sym_size(0), batch) || !equal(value.sym_size(0), batch) || !equal(value.sym_size(1), kv_heads))
    return false;
  if (!equal(heads, kv_heads) && !(enable_gqa && equal(heads % kv_heads, 0))) return false;
  if (!equal(key.sym_size(2), value.sym_size(2)) || !equal(key.sym_size(3), query.sym_size(3))) return false;
  for (const Tensor* tensor : {&query, &value})
    if (!TORCH_GUARD_OR_FALSE(tensor->sym_size(3).sym_le(kWidestHead))) return false;
  if (!mask || !mask->defined()) return true;
  const std::array<c10::SymInt, 4> scores{batch, heads, query.sym_size(2), key.sym_size(2)};
  return mask->dim() <= 4 && at::is_expandable_to(mask->sym_sizes(), scores);
}

int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& attn_mask,
               double /*dropout_p*/, bool /*is_causal*/, std::optional<double> /*scale*/, bool enable_gqa) {
  using at::SDPBackend;
  const auto& context = at::globalContext();
  const bool fused = fits(query, key, value, attn_mask, enable_gqa);
  for (const SDPBackend backend : at::globalContext().sDPPriorityOrder()) {
    if (backend == SDPBackend::math && context.userEnabledMathSDP()) return static_cast<int64_t>(SDPBackend::math);
    const bool wanted = (backend == SDPBackend::flash_attention && context.userEnabledFlashSDP()) ||
                        (backend == SDPBackend::efficient_attention && context.userEnabledMemEfficientSDP()) ||
                        (backend == SDPBackend::overrideable && context.userEnabledOverrideableSDP());
    if (wanted && fused) return static_cast<int64_t>(SDPBackend::overrideable);
  }
  return static_cast<int64_t>(SDPBackend::error);
}

Tensor with_dense_rows(const Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

// A new tensor whose dimensions lie in memory in the order of `like`'s: what the transposes around attention undo.
Tensor empty_in_layout_of(const Tensor& like, at::IntArrayRef sizes) {
  std::array<int64_t, 4> order{0, 1, 2, 3}, strides{};
  std::stable_sort(order.begin(), order.end() - 1,
                   [&](int64_t a, int64_t b) { return like.stride(a) > like.stride(b); });
  int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[static_cast<size_t>(*d)] = stride;
    stride *= sizes[static_cast<size_t>(*d)];
  }
  return empty_strided_on_current_device(sizes, strides, like.scalar_type());
}

kernels::Heads heads_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {const_cast<void*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2)};
}

// The inputs of both directions, with the tensors the kernel arguments point into.
struct Attention {
  Tensor query, key, value, bias;
  kernels::AttentionArgs args;

  Attention(const Tensor& q, const Tensor& k, const Tensor& v, const OptionalTensor& attn_bias, double dropout_p,
            bool is_causal, std::optional<double> scale, runtime::PhiloxState random) {
    TORCH_CHECK(
        fits(q, k, v, attn_bias, true),
        "mybackend: the fused attention kernel takes query, key and value of one type (float, half or bfloat16) "
        "and of shape (batch, heads, length, width <= 256), got ",
        q.sizes(), ", ", k.sizes(), " and ", v.sizes());
    query = with_dense_rows(q);
    key = with_dense_rows(k);
    value = with_dense_rows(v);
    const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2), width = q.size(3);
    args = {batch,
            heads,
            k.size(1),
            queries,
            keys,
            width,
            v.size(3),
            to_dtype(q.scalar_type()),
            static_cast<float>(scale.value_or(1.0 / std::sqrt(static_cast<double>(width)))),
            is_causal,
            static_cast<float>(dropout_p),
            random.seed,
            random.offset,
            heads_of(query),
            heads_of(key),
            heads_of(value),
            {}};
    if (!attn_bias || !attn_bias->defined()) return;
    bias = *attn_bias;
    if (bias.scalar_type() == at::kBool)
      bias = at::zeros_like(bias, bias.options().dtype(at::kFloat))
                 .masked_fill_(bias.logical_not(), -std::numeric_limits<double>::infinity());
    bias = bias.to(at::kFloat).expand({batch, heads, queries, keys});
    args.bias = {bias.const_data_ptr<float>(), bias.stride(0), bias.stride(1), bias.stride(2), bias.stride(3)};
  }

  device::Stream stream() const { return runtime::current_stream(query.device().index()); }
};

Tensor word_tensor(uint64_t word) {
  Tensor tensor = at::empty({}, at::dtype(at::kLong));
  *tensor.mutable_data_ptr<int64_t>() = static_cast<int64_t>(word);
  return tensor;
}

uint64_t word_of(const Tensor& tensor) {
  return tensor.defined() ? static_cast<uint64_t>(tensor.item<int64_t>()) : 0;
}

}  // namespace

int64_t _fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& attn_mask,
                          double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  return choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>
_scaled_dot_product_fused_attention_overrideable(const Tensor& query, const Tensor& key, const Tensor& value,
                                                 const OptionalTensor& attn_bias, double dropout_p, bool is_causal,
                                                 bool /*return_debug_mask*/, std::optional<double> scale) {
  TORCH_CHECK(dropout_p >= 0 && dropout_p <= 1, "dropout probability has to be between 0 and 1, but got ", dropout_p);
  runtime::PhiloxState random{0, 0};
  if (dropout_p > 0) random = runtime::philox(std::nullopt, kWordsPerWeight);
  const Attention attention(query, key, value, attn_bias, dropout_p, is_causal, scale, random);
  const kernels::AttentionArgs& args = attention.args;
  Tensor out = empty_in_layout_of(query, {args.batch, args.heads, args.queries, args.value_width});
  Tensor logsumexp = empty_on_current_device({args.batch, args.heads, args.queries}, at::kFloat);
  kernels::attention(attention.stream(), args, heads_of(out), logsumexp.mutable_data_ptr<float>());
  return {std::move(out),           std::move(logsumexp),       Tensor(), Tensor(), args.queries, args.keys,
          word_tensor(random.seed), word_tensor(random.offset), Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _scaled_dot_product_fused_attention_overrideable_backward(
    const Tensor& grad_out, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_bias,
    std::array<bool, 4> grad_input_mask, const Tensor& out, const Tensor& logsumexp, const Tensor& /*cum_seq_q*/,
    const Tensor& /*cum_seq_k*/, int64_t /*max_q*/, int64_t /*max_k*/, double dropout_p, bool is_causal,
    const Tensor& philox_seed, const Tensor& philox_offset, std::optional<double> scale) {
  runtime::PhiloxState random{0, 0};
  if (dropout_p > 0) random = {word_of(philox_seed), word_of(philox_offset)};
  const Attention attention(query, key, value, attn_bias, dropout_p, is_causal, scale, random);
  const kernels::AttentionArgs& args = attention.args;
  const Tensor grad = with_dense_rows(grad_out), result = with_dense_rows(out);
  const Tensor sums = logsumexp.contiguous();
  const Tensor delta = empty_on_current_device(sums.sizes(), at::kFloat);
  Tensor grad_q, grad_k, grad_v, grad_scores, grad_bias, workspace;
  if (grad_input_mask[0]) grad_q = empty_in_layout_of(query, query.sizes());
  if (grad_input_mask[1] || grad_input_mask[2]) {
    grad_k = empty_in_layout_of(key, key.sizes());
    grad_v = empty_in_layout_of(value, value.sizes());
  }
  if (grad_input_mask[3] && attn_bias.defined())
    grad_scores = empty_on_current_device({args.batch, args.heads, args.queries, args.keys}, at::kFloat);
  const bool busy =
      args.batch * args.kv_heads >= runtime::device_properties(query.device().index()).multi_processor_count;
  if (busy && grad_q.defined() && grad_k.defined() && !grad_scores.defined())
    workspace = empty_on_current_device({kernels::attention_workspace(args)}, at::kFloat);
  const auto floats = [](Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr; };
  kernels::attention_backward(
      attention.stream(), args,
      {heads_of(grad), heads_of(result), sums.const_data_ptr<float>(), delta.mutable_data_ptr<float>(),
       heads_of(grad_q), heads_of(grad_k), heads_of(grad_v), floats(grad_scores), floats(workspace)});
  if (grad_scores.defined()) grad_bias = at::sum_to(grad_scores, attn_bias.sizes()).to(attn_bias.scalar_type());
  return {std::move(grad_q), std::move(grad_k), std::move(grad_v), std::move(grad_bias)};
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &mybackend::aten::choose)
}  // namespace at::native
