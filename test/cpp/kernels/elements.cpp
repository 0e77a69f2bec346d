// Copies, random arrays, lists of tensors, pooling and recurrent cells on real threads: any number of them gives the
// one-thread answer, silently under ThreadSanitizer. Built with MB_TEST_THREADS, as are the kernels linked in.
#include <cmath>
#include <vector>

#include "csrc/device/portable.h"
#include "csrc/kernels/copy.h"
#include "csrc/kernels/foreach.h"
#include "csrc/kernels/fused_optimizers.h"
#include "csrc/kernels/pool.h"
#include "csrc/kernels/random.h"
#include "csrc/kernels/rearrange.h"
#include "csrc/kernels/rnn.h"
#include "test/cpp/check.h"
#include "test/cpp/linked_kernels.h"

using namespace mybackend;

namespace {

using Values = std::vector<float>;
const bool linked = (test::use_linked_kernels(), true);

Values numbers(int64_t count, int seed = 13) {
  Values values;
  for (int64_t i = 0; i < count; i++) values.push_back(float((i * 7919 + seed) % 1009 - 500) / 250.0f);
  return values;
}

bool close(const Values& a, const Values& b) {
  for (size_t i = 0; i < a.size(); i++)
    if (!(std::fabs(a[i] - b[i]) <= 1e-5f * (1 + std::fabs(b[i])))) return false;
  return a.size() == b.size();
}

template <class Run>
void for_all_threads(Run run) {
  for (int threads : {1, 3, 32}) {
    device::test_threads = threads;
    run();
  }
  device::test_threads = MB_TEST_THREADS;
}

// `run` fills one array that holds `start`.
template <class Run>
void agrees_for_all_threads(const Values& start, Run run) {
  Values expected = start;
  device::test_threads = 1;
  run(expected.data());
  CHECK(!close(expected, start));
  for (int threads : {3, 32}) {
    Values result = start;
    device::test_threads = threads;
    run(result.data());
    CHECK(close(result, expected));
  }
  device::test_threads = MB_TEST_THREADS;
}

// The transpose of a dense (rows, columns) matrix of W, written densely; dimension 0 is the innermost of the output.
template <class W>
Operands<2> transposed(const std::vector<W>& in, std::vector<W>& out, int64_t rows, int64_t columns, DType dtype) {
  constexpr auto size = int64_t(sizeof(W));
  Operands<2> o{};
  o.numel = rows * columns;
  o.ndim = 2;
  o.compute = o.dtype[0] = o.dtype[1] = dtype;
  o.contiguous[0] = true;
  o.data[0] = reinterpret_cast<char*>(out.data());
  o.data[1] = const_cast<char*>(reinterpret_cast<const char*>(in.data()));
  o.sizes[0] = rows, o.sizes[1] = columns;
  o.strides[0][0] = size, o.strides[0][1] = rows * size;
  o.strides[1][0] = columns * size, o.strides[1][1] = size;
  return o;
}

template <class W>
void check_transpose(int64_t rows, int64_t columns, DType dtype) {
  std::vector<W> in(rows * columns);
  for (size_t i = 0; i < in.size(); i++) in[i] = static_cast<W>(i % 251);
  for_all_threads([&] {
    std::vector<W> out(in.size());
    kernels::copy(nullptr, transposed(in, out, rows, columns, dtype), false, false);
    bool right = true;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) right = right && out[j * rows + i] == in[i * columns + j];
    CHECK(right);
  });
}

TEST_CASE("a transposition, by way of shared squares unless it is small, moves every element once") {
  check_transpose<int32_t>(10, 900, DType::Int32);
  check_transpose<uint8_t>(70, 130, DType::UInt8);
  check_transpose<int32_t>(130, 70, DType::Int32);
  check_transpose<int64_t>(65, 64, DType::Int64);
  check_transpose<complex<double>>(40, 33, DType::ComplexDouble);
}

// One dense output of `count` floats.
Operands<1> dense(float* out, int64_t count) {
  Operands<1> o{};
  o.numel = o.sizes[0] = count;
  o.ndim = 1;
  o.compute = o.dtype[0] = DType::Float;
  o.contiguous[0] = true;
  o.data[0] = reinterpret_cast<char*>(out);
  o.strides[0][0] = 4;
  return o;
}

TEST_CASE("random numbers do not depend on the number of threads") {
  constexpr int64_t kCount = 2 * 2048 + 77;
  const kernels::Seed seed{17, 4};
  const Values start(kCount, -7.0f);
  agrees_for_all_threads(start, [&](float* out) { kernels::uniform(nullptr, dense(out, kCount), seed, 0, 1, 0.999); });
  agrees_for_all_threads(start, [&](float* out) { kernels::normal(nullptr, dense(out, kCount), seed, 1, 2); });
  agrees_for_all_threads(start, [&](float* out) { kernels::exponential(nullptr, dense(out, kCount), seed, 3); });
  agrees_for_all_threads(start, [&](float* out) { kernels::bernoulli(nullptr, dense(out, kCount), seed, 0.3); });
}

// Tensors of one, several and no chunks, one after the other in the arrays `data`.
struct Lists {
  std::vector<int64_t> numel{1, 0, 700, kernels::kReduceChunk + 300, 4096};
  std::vector<std::vector<void*>> places;
  TensorLists lists;

  explicit Lists(const std::vector<float*>& data) : places(data.size()) {
    lists.count = int64_t(numel.size());
    lists.numel = numel.data();
    for (size_t k = 0; k < data.size(); k++) {
      float* next = data[k];
      for (int64_t n : numel) {
        places[k].push_back(next);
        next += n;
      }
      lists.data[k] = places[k].data();
      lists.dtype[k] = DType::Float;
    }
  }
  static int64_t total() { return 1 + 700 + kernels::kReduceChunk + 300 + 4096; }
};

TEST_CASE("norms and maxima of lists agree, finished by one block or by several") {
  Values in = numbers(Lists::total()), partial(16);
  const auto reduced = [&](float* out, auto run) {
    Lists l({in.data(), in.data()});
    for (size_t t = 0; t < l.numel.size(); t++) l.places[0][t] = out + t;
    run(l.lists);
  };
  const Values start(5, -7.0f);
  for (const auto norm : {kernels::Norm::L1, kernels::Norm::L2, kernels::Norm::Inf})
    agrees_for_all_threads(start, [&](float* out) {
      reduced(out,
              [&](const TensorLists& l) { kernels::foreach_norm(nullptr, l, norm, DType::Float, partial.data()); });
    });
  agrees_for_all_threads(start, [&](float* out) {
    reduced(out, [&](const TensorLists& l) { kernels::foreach_max(nullptr, l, partial.data()); });
  });
}

TEST_CASE("a fused optimizer's step over lists agrees") {
  const int64_t size = Lists::total();
  float scale = 2.0f, steps = 3.0f;
  const kernels::FusedStep step{0.1, nullptr, 0.01, false, &scale, nullptr};
  Values start = numbers(5 * size);
  for (float& x : start) x = std::fabs(x) + 0.1f;  // averages of squares are positive
  agrees_for_all_threads(start, [&](float* data) {
    const Lists l({data, data + size, data + 2 * size, data + 3 * size, data + 4 * size});
    const std::vector<void*> counts(l.numel.size(), &steps);
    kernels::fused_adam(nullptr, l.lists, counts.data(), step, {0.9, 0.99, 1e-8, true, true});
  });
  agrees_for_all_threads(start, [&](float* data) {
    const Lists l({data, data + size, data + 2 * size});
    kernels::fused_sgd(nullptr, l.lists, step, {0.9, 0.1, true, false});
  });
}

TEST_CASE("pooling and its gradients agree in both layouts") {
  for (bool channels_last : {false, true})
    for (bool adaptive : {false, true}) {
      const kernels::PoolGeometry g{2,         5,         {1, 23, 19}, {1, 12, 10}, {1, 3, 3},
                                    {1, 2, 2}, {0, 1, 1}, {1, 1, 1},   adaptive,    channels_last};
      const int64_t in_size = 10 * 23 * 19, out_size = 10 * 12 * 10;
      const Values in = numbers(in_size), grad = numbers(out_size, 5);
      std::vector<int64_t> indices(out_size);
      const Values pooled(out_size, -7.0f), gradient(in_size, -7.0f);
      agrees_for_all_threads(
          pooled, [&](float* out) { kernels::max_pool(nullptr, {g, DType::Float, in.data(), out, indices.data()}); });
      agrees_for_all_threads(gradient, [&](float* out) {
        kernels::max_pool_backward(nullptr, {g, DType::Float, grad.data(), out, indices.data()});
      });
      agrees_for_all_threads(
          pooled, [&](float* out) { kernels::average_pool(nullptr, {g, DType::Float, in.data(), out, true, 0}); });
      agrees_for_all_threads(gradient, [&](float* out) {
        kernels::average_pool_backward(nullptr, {g, DType::Float, grad.data(), out, true, 0});
      });
    }
}

TEST_CASE("the cells of an LSTM and a GRU and their gradients agree") {
  constexpr int64_t rows = 7, hidden = 150, size = rows * hidden;
  const Values a = numbers(5 * size), b = numbers(5 * size, 3), bias = numbers(4 * hidden, 5), state = numbers(size, 7);
  agrees_for_all_threads(Values(6 * size, -7.0f), [&](float* out) {
    kernels::lstm_cell(nullptr, {DType::Float, rows, hidden, a.data(), b.data(), bias.data(), bias.data(), state.data(),
                                 out, out + size, out + 2 * size});
  });
  agrees_for_all_threads(Values(5 * size, -7.0f), [&](float* out) {
    kernels::lstm_cell_backward(nullptr, {DType::Float, rows, hidden, a.data(), b.data(), state.data(), state.data(),
                                          b.data(), out, out + 4 * size});
  });
  agrees_for_all_threads(Values(6 * size, -7.0f), [&](float* out) {
    kernels::gru_cell(nullptr, {DType::Float, rows, hidden, a.data(), b.data(), bias.data(), bias.data(), state.data(),
                                out, out + size});
  });
  agrees_for_all_threads(Values(7 * size, -7.0f), [&](float* out) {
    kernels::gru_cell_backward(
        nullptr, {DType::Float, rows, hidden, state.data(), b.data(), out, out + 3 * size, out + 6 * size});
  });
}

TEST_CASE("pieces laid side by side are whole") {
  constexpr int64_t rows = 50, widths[] = {120, 4, 900};
  std::vector<std::vector<char>> pieces;
  kernels::Pieces p{};
  p.count = 3;
  p.rows = rows;
  for (int k = 0; k < 3; k++) {
    pieces.emplace_back(rows * widths[k]);
    for (size_t i = 0; i < pieces[k].size(); i++) pieces[k][i] = char(i * 31 + k);
    p.begin[k] = p.row_bytes;
    p.width[k] = widths[k];
    p.row_bytes += widths[k];
  }
  for (int k = 0; k < 3; k++) p.data[k] = pieces[k].data();
  for_all_threads([&] {
    std::vector<char> out(rows * p.row_bytes);
    p.out = out.data();
    kernels::cat_pieces(nullptr, p);
    bool right = true;
    for (int64_t row = 0; row < rows; row++)
      for (int k = 0; k < 3; k++)
        for (int64_t i = 0; i < widths[k]; i++)
          right = right && out[row * p.row_bytes + p.begin[k] + i] == pieces[k][row * widths[k] + i];
    CHECK(right);
  });
}

}  // namespace
