// Reductions, order statistics and scans on real threads: any number of them gives the one-thread answer, silently
// under ThreadSanitizer. Built with MB_TEST_THREADS, as are the kernels linked in. One operation of each kind of
// accumulator is taken: the collectives and barriers are those of csrc/kernels/reduce.h and scan.h for all.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "csrc/device/portable.h"
#include "csrc/kernels/cumulative.h"
#include "csrc/kernels/reductions.h"
#include "csrc/kernels/select.h"
#include "test/cpp/check.h"
#include "test/cpp/linked_kernels.h"

using namespace mybackend;

namespace {

constexpr int kThreads[] = {1, 3, 32};

std::vector<char> memory;
const Workspace workspace{nullptr, [](void*, int64_t bytes) {
                            memory.resize(static_cast<size_t>(bytes));
                            return memory.data();
                          }};

// rows x columns numbers, reduced along the rows (dim 0) or along each row (dim 1).
Reduction reduction(const std::vector<int64_t>& in, int64_t rows, int64_t columns, int dim, std::vector<int64_t>& out0,
                    std::vector<int64_t>& out1) {
  Reduction r{};
  r.in_dtype = r.out_dtype[0] = r.out_dtype[1] = DType::Int64;
  r.in = reinterpret_cast<const char*>(in.data());
  r.count = dim == 0 ? rows : columns;
  r.outputs = dim == 0 ? columns : rows;
  out0.assign(static_cast<size_t>(r.outputs), 0);
  out1.assign(static_cast<size_t>(r.outputs), 0);
  r.out[0] = reinterpret_cast<char*>(out0.data());
  r.out[1] = reinterpret_cast<char*>(out1.data());
  r.reduced = 1;
  r.kept = r.outputs > 1 ? 1 : 0;
  r.reduced_size[0] = r.count;
  r.reduced_stride[0] = dim == 0 ? columns * 8 : 8;
  r.kept_size[0] = r.outputs;
  r.kept_stride[0] = dim == 0 ? 8 : columns * 8;
  r.out_stride[0][0] = r.out_stride[1][0] = 8;
  return r;
}

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; i++) values.push_back((i * 7919 + 13) % 1009 - 500);
  return values;
}

const bool linked = (test::use_linked_kernels(), true);

template <class Run>
void agrees_for_all_threads(Run run) {
  // Rows, wide columns, narrow columns that are folded in groups, and each of them cut into parts.
  constexpr int64_t shapes[][2] = {{3, 700}, {40, 300}, {500, 3}, {1, 70000}, {300, 256}, {20000, 4}};
  for (const auto& shape : shapes) {
    const std::vector<int64_t> in = numbers(shape[0] * shape[1]);
    for (int dim : {0, 1}) {
      std::vector<int64_t> expected0, expected1, out0, out1;
      device::test_threads = 1;
      run(reduction(in, shape[0], shape[1], dim, expected0, expected1));
      for (int threads : kThreads) {
        device::test_threads = threads;
        run(reduction(in, shape[0], shape[1], dim, out0, out1));
        CHECK(out0 == expected0);
        CHECK(out1 == expected1);
      }
    }
  }
  device::test_threads = MB_TEST_THREADS;
}

TEST_CASE("a sum is the same for any number of threads") {
  agrees_for_all_threads([](const Reduction& r) { kernels::reduce_sum(nullptr, r, workspace); });
}

TEST_CASE("the value that wins and its position are the same for any number of threads") {
  agrees_for_all_threads([](const Reduction& r) { kernels::reduce_max_index(nullptr, r, workspace); });
}

TEST_CASE("smallest and largest are the same for any number of threads") {
  agrees_for_all_threads([](const Reduction& r) { kernels::reduce_aminmax(nullptr, r, workspace); });
}

TEST_CASE("whether any differs from zero is the same for any number of threads") {
  agrees_for_all_threads([](Reduction r) {
    r.out_dtype[0] = DType::UInt8;
    kernels::reduce_any(nullptr, r, workspace);
  });
}

TEST_CASE("a median is the same for any number of threads") {
  agrees_for_all_threads([](const Reduction& r) {
    if (r.outputs < 100 && r.count < 10000) kernels::select_place(nullptr, r, kernels::Place::Median, 0);
  });
}

TEST_CASE("a variance and a mean are those of the elements") {
  for (const auto& shape : {std::pair{3, 7000}, {40, 300}, {9000, 6}})
    for (int dim : {0, 1}) {
      const int64_t rows = shape.first, columns = shape.second;
      const std::vector<int64_t> whole = numbers(rows * columns);
      const std::vector<double> in(whole.begin(), whole.end());
      std::vector<int64_t> out0, out1;
      Reduction r = reduction(whole, rows, columns, dim, out0, out1);
      std::vector<double> variance(r.outputs), mean(r.outputs);
      r.in_dtype = r.out_dtype[0] = r.out_dtype[1] = DType::Double;
      r.in = reinterpret_cast<const char*>(in.data());
      r.out[0] = reinterpret_cast<char*>(variance.data());
      r.out[1] = reinterpret_cast<char*>(mean.data());
      for (int threads : kThreads) {
        device::test_threads = threads;
        kernels::reduce_variance(nullptr, r, workspace, 1, false);
        bool right = true;
        for (int64_t o = 0; o < r.outputs; o++) {
          const double* x = in.data() + o * (dim == 0 ? 1 : columns);
          const int64_t step = dim == 0 ? columns : 1;
          double sum = 0, squares = 0;
          for (int64_t i = 0; i < r.count; i++) sum += x[i * step];
          for (int64_t i = 0; i < r.count; i++) squares += std::pow(x[i * step] - sum / double(r.count), 2);
          right = right && std::fabs(mean[o] - sum / double(r.count)) < 1e-9 &&
                  std::fabs(variance[o] - squares / double(r.count - 1)) < 1e-6;
        }
        CHECK(right);
      }
    }
  device::test_threads = MB_TEST_THREADS;
}

TEST_CASE("a sum adds every element once") {
  const std::vector<int64_t> in = numbers(70001 * 3);
  int64_t expected[3] = {0, 0, 0};
  for (size_t i = 0; i < in.size(); i++) expected[i % 3] += in[i];
  std::vector<int64_t> out0, out1;
  kernels::reduce_sum(nullptr, reduction(in, 70001, 3, 0, out0, out1), workspace);
  for (size_t i = 0; i < 3; i++) CHECK_EQ(out0[i], expected[i]);
}

constexpr int64_t kLines = 20, kLength = 9000;

// Lines that lie along the fast dimension (along = 0) or across it, long enough to be scanned in parts.
Scan lines(const std::vector<int64_t>& in, std::vector<int64_t>& out0, std::vector<int64_t>& out1, int along) {
  Scan s{};
  s.in_dtype = s.out_dtype[0] = s.out_dtype[1] = DType::Int64;
  s.in = reinterpret_cast<const char*>(in.data());
  s.out[0] = reinterpret_cast<char*>(out0.data());
  s.out[1] = reinterpret_cast<char*>(out1.data());
  s.n = kLength;
  s.lines = s.kept_size[0] = kLines;
  s.kept = 1;
  s.in_stride = s.out_stride[0] = s.out_stride[1] = along == 0 ? 8 : kLines * 8;
  s.kept_stride[0] = s.kept_out_stride[0][0] = s.kept_out_stride[1][0] = along == 0 ? kLength * 8 : 8;
  return s;
}

// Runs `scan` with each number of threads; `step(i, at)` says whether element i of a line, at `at`, is right.
template <class Run, class Step>
void check_scan(Run scan, Step step) {
  for (int along : {0, 1})
    for (int threads : kThreads) {
      device::test_threads = threads;
      scan(along);
      bool right = true;
      for (int64_t line = 0; line < kLines; line++)
        for (int64_t i = 0; i < kLength; i++)
          right = right && step(i, static_cast<size_t>(along == 0 ? line * kLength + i : i * kLines + line));
      CHECK(right);
    }
  device::test_threads = MB_TEST_THREADS;
}

TEST_CASE("a running sum in parts is the running sum") {
  const std::vector<int64_t> in = numbers(kLines * kLength);
  std::vector<int64_t> out(in.size()), none(in.size());
  int64_t sum = 0;
  check_scan([&](int along) { kernels::cumulative_sum(nullptr, lines(in, out, none, along), workspace); },
             [&](int64_t i, size_t at) {
               sum = i == 0 ? in[at] : sum + in[at];
               return out[at] == sum;
             });
}

TEST_CASE("a running maximum in parts is the running maximum, and names its last place") {
  const std::vector<int64_t> in = numbers(kLines * kLength);
  std::vector<int64_t> out(in.size()), places(in.size());
  int64_t largest = 0, place = 0;
  check_scan([&](int along) { kernels::cumulative_max(nullptr, lines(in, out, places, along), workspace); },
             [&](int64_t i, size_t at) {
               if (i == 0 || in[at] >= largest) largest = in[at], place = i;
               return out[at] == largest && places[at] == place;
             });
}

TEST_CASE("a running log of a sum of exponentials in parts is that") {
  const std::vector<int64_t> whole = numbers(kLines * kLength);
  const std::vector<double> in(whole.begin(), whole.end());
  std::vector<double> out(in.size());
  std::vector<int64_t> none(in.size());
  double total = 0;
  check_scan(
      [&](int along) {
        Scan s = lines(whole, none, none, along);
        s.in_dtype = s.out_dtype[0] = DType::Double;
        s.in = reinterpret_cast<const char*>(in.data());
        s.out[0] = reinterpret_cast<char*>(out.data());
        kernels::cumulative_logsumexp(nullptr, s, workspace);
      },
      [&](int64_t i, size_t at) {
        const double larger = std::max(total, in[at]), smaller = std::min(total, in[at]);
        total = i == 0 ? in[at] : larger + std::log1p(std::exp(smaller - larger));
        return std::fabs(out[at] - total) < 1e-9;
      });
}

}  // namespace
