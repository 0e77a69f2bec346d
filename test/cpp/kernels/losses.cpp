// Alignment and margin losses, reductions over segments and sampling at places on real threads: any number of them
// gives the one-thread answer up to rounding, silently under ThreadSanitizer. Built with MB_TEST_THREADS, as are the
// kernels linked in.
#include <algorithm>
#include <vector>

#include "csrc/kernels/ctc_loss.h"
#include "csrc/kernels/grid_sample.h"
#include "csrc/kernels/margin_loss.h"
#include "csrc/kernels/segment_reduce.h"
#include "test/cpp/check.h"
#include "test/cpp/kernels/agreement.h"
#include "test/cpp/linked_kernels.h"

using namespace mybackend;

namespace {

using test::agrees_for_all_threads;
using test::Floats;
using test::numbers;
const bool linked = (test::use_linked_kernels(), true);

TEST_CASE("ctc loss and its gradient agree, labels twice and an item that cannot be aligned included") {
  constexpr int64_t time = 30, batch = 3, classes = 6, longest = 20, states = 2 * longest + 1;
  Floats scores = numbers(time * batch * classes);
  for (float& score : scores) score -= 3;
  std::vector<int32_t> targets;
  for (int32_t i = 0; i < batch * longest; i++) targets.push_back(1 + i * i % 5);
  const std::vector<int64_t> input_length{30, 12, 5}, target_length{9, 0, 20}, begin{0, longest, 2 * longest};
  device::ErrorRecord errors{};
  const kernels::CtcLoss args{DType::Float,
                              DType::Int32,
                              time,
                              batch,
                              classes,
                              batch * classes,
                              classes,
                              1,
                              longest,
                              1,
                              0,
                              scores.data(),
                              targets.data(),
                              input_length.data(),
                              target_length.data(),
                              begin.data(),
                              &errors};
  Floats loss(batch), alpha(batch * time * states), beta(alpha.size());
  std::vector<int64_t> follower(batch * longest);
  agrees_for_all_threads(2, [&](float* result) {
    kernels::ctc_loss(nullptr, args, loss.data(), alpha.data());
    std::copy_n(loss.data(), 2, result);
    CHECK_EQ(loss[2], std::numeric_limits<float>::infinity());
  });
  const Floats grad{1.0f, 0.5f, 2.0f};
  agrees_for_all_threads(time * batch * classes, [&](float* result) {
    kernels::ctc_loss_backward(nullptr, args, grad.data(), 1, loss.data(), alpha.data(), true, beta.data(),
                               follower.data(), result);
  });
  CHECK_EQ(errors.code, 0);
}

TEST_CASE("margin losses and their gradients agree") {
  constexpr int64_t rows = 7, classes = 90;
  const Floats scores = numbers(rows * classes), weight = numbers(classes, 4), grad = numbers(rows, 8);
  std::vector<int64_t> target, targets;
  for (int64_t i = 0; i < rows; i++) target.push_back(i * 13 % classes);
  for (int64_t i = 0; i < rows * classes; i++) targets.push_back(i % classes < 4 ? i * 31 % classes : -1);
  device::ErrorRecord errors{};
  const kernels::MultiMargin one{DType::Float,  rows,          classes,       2,      1.0,
                                 scores.data(), target.data(), weight.data(), &errors};
  agrees_for_all_threads(rows, [&](float* result) { kernels::multi_margin_loss(nullptr, one, result); });
  agrees_for_all_threads(rows * classes, [&](float* result) {
    kernels::multi_margin_loss_backward(nullptr, one, grad.data(), 1, 0.25, result);
  });
  const kernels::MultilabelMargin several{DType::Float, rows, classes, scores.data(), targets.data(), &errors};
  Floats is_target(rows * classes);
  agrees_for_all_threads(
      rows, [&](float* result) { kernels::multilabel_margin_loss(nullptr, several, result, is_target.data()); });
  agrees_for_all_threads(rows * classes, [&](float* result) {
    kernels::multilabel_margin_loss_backward(nullptr, several, is_target.data(), grad.data(), 1, 0.25, result);
  });
  CHECK_EQ(errors.code, 0);
}

TEST_CASE("reductions over segments and their gradients agree, narrow and wide") {
  for (int64_t inner : {int64_t(2), int64_t(40)}) {
    constexpr int64_t length = 100, segments = 4;
    const std::vector<int64_t> offsets{0, 3, 3, 70, length};
    const Floats data = numbers(length * inner), grad = numbers(segments * inner, 3);
    for (const auto op : {kernels::SegmentOp::Max, kernels::SegmentOp::Mean, kernels::SegmentOp::Sum}) {
      const kernels::SegmentReduce args{DType::Float, op,   1,   length,         inner,
                                        segments,     true, 0.5, offsets.data(), data.data()};
      Floats out(segments * inner);
      agrees_for_all_threads(segments * inner, [&](float* result) {
        kernels::segment_reduce(nullptr, args, result);
        std::copy_n(result, out.size(), out.data());
      });
      agrees_for_all_threads(length * inner, [&](float* result) {
        kernels::segment_reduce_backward(nullptr, args, out.data(), grad.data(), result);
      });
    }
  }
}

TEST_CASE("images sampled at places, and both gradients, agree") {
  for (const auto kind : {kernels::GridInterpolation::Bilinear, kernels::GridInterpolation::Bicubic}) {
    constexpr int64_t batch = 2, channels = 3, plane = 9 * 11, places = 10 * 13;
    const Floats in = numbers(batch * channels * plane), grid = numbers(batch * places * 2, 6);
    const Floats grad = numbers(batch * channels * places, 2);
    const kernels::GridSample args{DType::Float, batch,       channels,   2,
                                   {1, 9, 11},   {1, 10, 13}, kind,       kernels::GridPadding::Zeros,
                                   false,        in.data(),   grid.data()};
    agrees_for_all_threads(batch * channels * places,
                           [&](float* result) { kernels::grid_sample(nullptr, args, result); });
    agrees_for_all_threads(batch * channels * plane, [&](float* result) {
      kernels::grid_sample_backward_input(nullptr, args, grad.data(), result);
    });
    agrees_for_all_threads(batch * places * 2, [&](float* result) {
      kernels::grid_sample_backward_grid(nullptr, args, grad.data(), result);
    });
  }
}

}  // namespace
