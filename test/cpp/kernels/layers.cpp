// Softmax, norms, embeddings, likelihood and attention on real threads: any number of them gives the one-thread answer
// up to rounding, silently under ThreadSanitizer. Built with MB_TEST_THREADS, as are the kernels linked in.
#include <vector>

#include "csrc/kernels/attention.h"
#include "csrc/kernels/channel_norm.h"
#include "csrc/kernels/embedding.h"
#include "csrc/kernels/layer_norm.h"
#include "csrc/kernels/nll_loss.h"
#include "csrc/kernels/softmax.h"
#include "test/cpp/check.h"
#include "test/cpp/kernels/agreement.h"
#include "test/cpp/linked_kernels.h"

using namespace mybackend;

namespace {

using test::agrees_for_all_threads;
using test::Floats;
using test::numbers;
const bool linked = (test::use_linked_kernels(), true);

TEST_CASE("softmax and its gradient agree along rows and across strips") {
  for (const auto shape : {kernels::SoftmaxShape{5, 70, 1}, kernels::SoftmaxShape{2, 9, 200}}) {
    const int64_t size = shape.outer * shape.dim * shape.inner;
    const Floats in = numbers(size), out = numbers(size, 5);
    for (bool log : {false, true}) {
      agrees_for_all_threads(size, [&](float* result) {
        kernels::softmax(nullptr, result, in.data(), shape, DType::Float, DType::Float, log);
      });
      agrees_for_all_threads(size, [&](float* result) {
        kernels::softmax_backward(nullptr, result, in.data(), out.data(), shape, DType::Float, DType::Float, log);
      });
    }
  }
}

TEST_CASE("layer norm and its three gradients agree") {
  constexpr int64_t rows = 300, n = 150;
  const Floats in = numbers(rows * n), grad = numbers(rows * n, 7), weight = numbers(n), mean = numbers(rows);
  const Floats rstd(rows, 0.5f);
  Floats workspace(size_t(2 * kernels::layer_norm_pieces(rows, n) * n)), first(rows * n), second(rows);
  const kernels::LayerNormArgs args{rows,         n,         false,         DType::Float,
                                    DType::Float, in.data(), weight.data(), weight.data()};
  agrees_for_all_threads(
      rows * n, [&](float* result) { kernels::layer_norm(nullptr, args, 1e-5, result, second.data(), second.data()); });
  agrees_for_all_threads(rows * n, [&](float* result) {
    kernels::layer_norm_backward(nullptr, args, grad.data(), mean.data(), rstd.data(), result, nullptr, nullptr,
                                 nullptr);
  });
  agrees_for_all_threads(2 * n, [&](float* result) {
    kernels::layer_norm_backward(nullptr, args, grad.data(), mean.data(), rstd.data(), first.data(), result, result + n,
                                 workspace.data());
  });
}

TEST_CASE("channel statistics agree for planes and for rows") {
  for (bool last : {false, true}) {
    const kernels::ChannelLayout layout{6, 140, 50, last};
    const int64_t size = layout.n * layout.c * layout.s, groups = kernels::channel_groups(layout);
    const Floats in = numbers(size), grad = numbers(size, 3), mean = numbers(layout.c);
    Floats group_mean(size_t(groups * layout.c)), squares(size_t(groups * layout.c)), other(size_t(layout.c));
    agrees_for_all_threads(2 * layout.c, [&](float* result) {
      kernels::channel_moments(nullptr, layout, DType::Float, in.data(), group_mean.data(), squares.data());
      kernels::batch_norm_statistics(nullptr, {DType::Float, layout.c, groups, 1e-5, 0.1, layout}, group_mean.data(),
                                     squares.data(), result, nullptr, result + layout.c, {}, {});
    });
    agrees_for_all_threads(3 * layout.c, [&](float* result) {
      kernels::channel_gradient_sums(nullptr, layout, DType::Float, grad.data(), in.data(), mean.data(),
                                     group_mean.data(), squares.data());
      kernels::batch_norm_gradients(nullptr, DType::Float, layout.c, groups, double(layout.n * layout.s), true,
                                    group_mean.data(), squares.data(), mean.data(), {}, {}, {}, result,
                                    result + layout.c, result + 2 * layout.c);
    });
    agrees_for_all_threads(size, [&](float* result) {
      kernels::channel_normalize(nullptr, layout, DType::Float, in.data(), mean.data(), mean.data(), mean.data(),
                                 result);
    });
  }
}

TEST_CASE("embedding gradients and bags agree and report no error") {
  constexpr int64_t count = 2500, rows = 37, width = 150;
  std::vector<int64_t> indices, offsets{0, 10, 10, 900}, bag_of(count), sizes(4), winners(4 * width);
  for (int64_t i = 0; i < count; i++) indices.push_back(i * i % rows);
  const Floats grad = numbers(count * width), weight = numbers(rows * width);
  device::ErrorRecord errors{};
  const kernels::EmbeddingIndices all{indices.data(), DType::Int64, count, 3};
  agrees_for_all_threads(rows * width, [&](float* result) {
    std::vector<int64_t> counts(rows);
    kernels::embedding_backward(nullptr, all, rows, width, DType::Float, grad.data(), nullptr, nullptr, counts.data(),
                                result, &errors);
  });
  for (const auto mode : {kernels::BagMode::Sum, kernels::BagMode::Mean, kernels::BagMode::Max})
    agrees_for_all_threads(4 * width, [&](float* result) {
      kernels::embedding_bag(nullptr, {all, offsets.data(), 4, false, mode}, DType::Float, rows, width, weight.data(),
                             nullptr, result, bag_of.data(), sizes.data(), winners.data(), &errors);
    });
  CHECK_EQ(errors.code, 0);
}

TEST_CASE("negative log likelihood and its gradient agree for rows and for images") {
  for (int64_t s : {int64_t(1), int64_t(200)}) {
    const int64_t n = s == 1 ? 9000 : 3, c = 5;
    std::vector<int64_t> target;
    for (int64_t i = 0; i < n * s; i++) target.push_back(i % 7 == 0 ? -100 : i % c);
    const Floats scores = numbers(n * c * s), grad{0.5f}, total{3.0f};
    Floats workspace(size_t(2 * kernels::nll_loss_pieces(n * s)));
    device::ErrorRecord errors{};
    const kernels::NllLossArgs args{
        n, c, s, -100, kernels::LossReduction::Mean, DType::Float, DType::Int64, target.data(), nullptr};
    agrees_for_all_threads(2, [&](float* result) {
      kernels::nll_loss(nullptr, args, scores.data(), result, result + 1, workspace.data(), &errors);
    });
    agrees_for_all_threads(n * c * s, [&](float* result) {
      kernels::nll_loss_backward(nullptr, args, grad.data(), total.data(), result, &errors);
    });
    CHECK_EQ(errors.code, 0);
  }
}

TEST_CASE("attention and its gradients agree, masked and with dropout") {
  for (float dropout : {0.0f, 0.3f}) {
    constexpr int64_t batch = 1, heads = 2, queries = 70, keys = 45, width = 24;
    constexpr int64_t size = batch * heads * queries * width, kv_size = batch * keys * width;
    Floats q = numbers(size), k = numbers(kv_size, 5), v = numbers(kv_size, 9), grad = numbers(size, 3);
    Floats bias = numbers(queries * keys, 2), sums(heads * queries), delta(heads * queries), out(size);
    kernels::AttentionArgs args{batch,   heads, 1, queries, keys, width, width, DType::Float, 0.2f, true,
                                dropout, 11,    4, {},      {},   {},    {}};
    const auto of_queries = [&](float* data) {
      return kernels::Heads{data, heads * queries * width, queries * width, width};
    };
    const auto of_keys = [&](float* data) { return kernels::Heads{data, keys * width, keys * width, width}; };
    args.q = of_queries(q.data());
    args.k = of_keys(k.data());
    args.v = of_keys(v.data());
    args.bias = {bias.data(), 0, 0, keys, 1};
    agrees_for_all_threads(size,
                           [&](float* result) { kernels::attention(nullptr, args, of_queries(result), sums.data()); });
    kernels::attention(nullptr, args, of_queries(out.data()), sums.data());
    agrees_for_all_threads(size + 2 * kv_size + heads * queries * keys, [&](float* result) {
      kernels::attention_backward(
          nullptr, args,
          {of_queries(grad.data()), of_queries(out.data()), sums.data(), delta.data(), of_queries(result),
           of_keys(result + size), of_keys(result + size + kv_size), result + size + 2 * kv_size, nullptr});
    });
    Floats workspace(size_t(kernels::attention_workspace(args)));
    agrees_for_all_threads(size + 2 * kv_size, [&](float* result) {
      kernels::attention_backward(
          nullptr, args,
          {of_queries(grad.data()), of_queries(out.data()), sums.data(), delta.data(), of_queries(result),
           of_keys(result + size), of_keys(result + size + kv_size), nullptr, workspace.data()});
    });
  }
}

}  // namespace
