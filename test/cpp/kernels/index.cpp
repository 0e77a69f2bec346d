// Compaction, sorts, scatters and interpolation on real threads: any number of them gives the expected answer, silently
// under ThreadSanitizer. Built with MB_TEST_THREADS, as are the kernels linked in.
#include <algorithm>
#include <numeric>
#include <vector>

#include "csrc/device/portable.h"
#include "csrc/kernels/compact.h"
#include "csrc/kernels/index.h"
#include "csrc/kernels/resample.h"
#include "csrc/kernels/sort.h"
#include "test/cpp/check.h"
#include "test/cpp/linked_kernels.h"

using namespace mybackend;

namespace {

const bool linked = (test::use_linked_kernels(), true);

template <class Run>
void for_all_threads(Run run) {
  for (int threads : {1, 3, 32}) {
    device::test_threads = threads;
    run();
  }
  device::test_threads = MB_TEST_THREADS;
}

std::vector<int32_t> numbers(int64_t count, int32_t range) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; i++) values.push_back(static_cast<int32_t>((i * 7919 + i * i * 31 + 13) % range));
  return values;
}

const char* bytes(const std::vector<int32_t>& v) {
  return reinterpret_cast<const char*>(v.data());
}
char* bytes(std::vector<int32_t>& v) {
  return reinterpret_cast<char*>(v.data());
}

// Rows sorted, or their first `keep` elements, as (value, position).
void check_sort(int64_t rows, int64_t columns, int64_t keep, bool descending, int32_t range) {
  const std::vector<int32_t> in = numbers(rows * columns, range);
  for_all_threads([&] {
    std::vector<int32_t> values(rows * keep);
    std::vector<int64_t> indices(rows * keep);
    std::vector<char> scratch(kernels::sort_scratch_bytes(rows, columns));
    const kernels::SortRows r{bytes(in),     DType::Int32,   rows, columns, descending,
                              bytes(values), indices.data(), keep, true,    scratch.data()};
    keep == columns ? kernels::sort_rows(nullptr, r) : kernels::topk_rows(nullptr, r);
    bool right = true;
    for (int64_t row = 0; row < rows; row++) {
      const int32_t* x = in.data() + row * columns;
      std::vector<int64_t> order(columns);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
      for (int64_t k = 0; k < keep; k++)
        right = right && indices[row * keep + k] == order[k] && values[row * keep + k] == x[order[k]];
    }
    CHECK(right);
  });
}

TEST_CASE("a sort keeps the order of equals") {
  check_sort(5, 40, 40, false, 10);    // by rank
  check_sort(3, 900, 900, true, 200);  // by digits
}

TEST_CASE("the largest elements are found") {
  check_sort(3, 900, 5, true, 100000);    // a bound leaves few candidates
  check_sort(2, 900, 7, true, 3);         // a bound leaves many equals
  check_sort(2, 900, 400, false, 10000);  // no bound
  check_sort(4, 50, 9, true, 1000);
}

TEST_CASE("what a mask chooses is written in order, and put back") {
  constexpr int64_t kCount = 3 * kernels::kCompactChunk + 77;
  const std::vector<int32_t> data = numbers(kCount, 1000);
  std::vector<uint8_t> mask(kCount);
  std::vector<int32_t> expected;
  std::vector<int64_t> places;
  for (int64_t i = 0; i < kCount; i++) {
    mask[i] = data[i] % 3 == 0;
    if (mask[i]) expected.push_back(data[i]), places.push_back(i);
  }
  const auto most = static_cast<int64_t>(places.size());
  for_all_threads([&] {
    std::vector<int64_t> counts(kernels::compact_chunks(kCount) + 1), out(places.size());
    const char* flags = reinterpret_cast<const char*>(mask.data());
    kernels::count_nonzero_chunks(nullptr, flags, DType::UInt8, kCount, counts.data());
    CHECK_EQ(counts.back(), most);
    kernels::write_nonzero(nullptr, flags, DType::UInt8, kCount, counts.data(), out.data(), 1, most);
    CHECK(out == places);
    std::vector<int32_t> chosen(places.size()), expanded(kCount, -1);
    kernels::compact_masked(nullptr, bytes(data), DType::Int32, mask.data(), kCount, counts.data(), bytes(chosen), 1);
    CHECK(chosen == expected);
    kernels::expand_masked(nullptr, bytes(expanded), DType::Int32, mask.data(), kCount, counts.data(), bytes(chosen));
    bool right = true;
    for (int64_t i = 0; i < kCount; i++) right = right && expanded[i] == (mask[i] ? data[i] : -1);
    CHECK(right);
  });
}

// An index array over (rows, columns) that names places along one of the dimensions of a matrix.
struct Matrix {
  int64_t rows, columns;
  bool along_rows;  // the index names a row
  int64_t size;     // of the named dimension
  std::vector<int64_t> index;
  device::ErrorRecord errors{};

  // `distinct`: no two positions name the same place.
  Matrix(int64_t rows, int64_t columns, bool along_rows, int64_t size, bool distinct)
      : rows(rows), columns(columns), along_rows(along_rows), size(size) {
    for (int64_t i = 0; i < rows * columns; i++) {
      const int64_t r = i / columns, c = i % columns, walked = along_rows ? r : c;
      index.push_back(distinct ? (walked * 7 + 3) % size : (r * 5 + c * 3 + r * c) % size);
    }
  }

  int64_t place(int64_t i) const {
    return along_rows ? index[i] * columns + i % columns : i / columns * size + index[i];
  }
  int64_t numel() const { return (along_rows ? columns : rows) * size; }

  // `indexed`: the strided array the index walks; `other` lies as the index does. Fibers come first.
  kernels::IndexOperands operands(std::vector<int32_t>& indexed, std::vector<int32_t>& other, bool scatter) {
    kernels::IndexOperands o{};
    o.numel = rows * columns;
    o.ndim = 2;
    o.fiber_dims = 1;
    o.count = 1;
    o.dtype = DType::Int32;
    o.to = scatter ? bytes(indexed) : bytes(other);
    o.from = scatter ? bytes(other) : bytes(indexed);
    o.index[0] = reinterpret_cast<const char*>(index.data());
    o.indexed_sizes[0] = size;
    o.indexed_strides[0] = along_rows ? columns * 4 : 4;
    const int row = along_rows ? 1 : 0, column = 1 - row;
    o.sizes[row] = rows, o.sizes[column] = columns;
    int64_t* walked = scatter ? o.to_strides : o.from_strides;
    int64_t* plain = scatter ? o.from_strides : o.to_strides;
    walked[0] = along_rows ? 4 : size * 4;
    plain[row] = columns * 4, plain[column] = 4;
    o.index_strides[0][row] = columns * 8, o.index_strides[0][column] = 8;
    o.errors = &errors;
    o.code = 1;
    return o;
  }
};

TEST_CASE("colliding elements are added once each") {
  for (bool along_rows : {false, true}) {
    Matrix m(90, 70, along_rows, 40, false);
    std::vector<int32_t> from = numbers(m.rows * m.columns, 1000), expected(m.numel(), 1);
    for (size_t i = 0; i < from.size(); i++) expected[m.place(static_cast<int64_t>(i))] += from[i];
    for (bool shuffled : {false, true}) {
      for_all_threads([&] {
        std::vector<int32_t> to(m.numel(), 1);
        kernels::IndexOperands o = m.operands(to, from, true);
        o.shuffled = shuffled;
        kernels::scatter_elements(nullptr, o, kernels::Update::Add);
        CHECK(to == expected);
      });
    }
  }
}

TEST_CASE("the last of colliding elements stays") {
  for (bool along_rows : {false, true}) {
    Matrix m(90, 70, along_rows, 40, false);
    std::vector<int32_t> from = numbers(m.rows * m.columns, 1000), expected(m.numel(), 1);
    for (size_t i = 0; i < from.size(); i++) expected[m.place(static_cast<int64_t>(i))] = from[i];
    for_all_threads([&] {
      std::vector<int32_t> to(m.numel(), 1);
      kernels::scatter_elements(nullptr, m.operands(to, from, true), kernels::Update::Assign);
      CHECK(to == expected);
    });
  }
}

TEST_CASE("whole rows are assigned to the rows that are named") {
  Matrix m(60, 70, true, 101, true);
  std::vector<int32_t> from = numbers(m.rows * m.columns, 1000), expected(m.numel(), 1);
  for (size_t i = 0; i < from.size(); i++) expected[m.place(static_cast<int64_t>(i))] = from[i];
  for_all_threads([&] {
    std::vector<int32_t> to(m.numel(), 1);
    kernels::IndexOperands o = m.operands(to, from, true);
    o.index_strides[0][0] = 0;
    o.shuffled = true;
    kernels::scatter_elements(nullptr, o, kernels::Update::Assign);
    CHECK(to == expected);
  });
}

TEST_CASE("a gather takes what the index names and reports an index out of range") {
  Matrix m(90, 70, false, 40, false);
  std::vector<int32_t> from = numbers(m.numel(), 1000), expected;
  for (int64_t i = 0; i < m.rows * m.columns; i++) expected.push_back(from[m.place(i)]);
  for_all_threads([&] {
    std::vector<int32_t> to(expected.size());
    kernels::IndexOperands o = m.operands(from, to, false);
    // A gather's innermost dimension comes first.
    std::swap(o.sizes[0], o.sizes[1]);
    std::swap(o.to_strides[0], o.to_strides[1]);
    std::swap(o.from_strides[0], o.from_strides[1]);
    std::swap(o.index_strides[0][0], o.index_strides[0][1]);
    kernels::gather_elements(nullptr, o);
    CHECK(to == expected);
    CHECK_EQ(m.errors.code, 0);
    const int64_t held = m.index[17];
    m.index[17] = 40;
    kernels::gather_elements(nullptr, o);
    m.index[17] = held;
    CHECK_EQ(m.errors.code, 1);
    CHECK_EQ(m.errors.values[0], 40);
    m.errors = {};
  });
}

TEST_CASE("both axes of a plane are resampled by way of shared rows") {
  // Twice as large; each output is 3/4 of the nearest input and 1/4 of the next one on its side, alone at the borders.
  constexpr int64_t kIn = 20, kOut = 40, kPlanes = 3, kBand = 8;
  std::vector<int32_t> start, count, first, last;
  std::vector<float> weight(2 * kOut);
  for (int32_t o = 0; o < kOut; o++) {
    const bool border = o == 0 || o == kOut - 1;
    start.push_back(border ? o / 2 : (o - 1) / 2);
    count.push_back(border ? 1 : 2);
    weight[o] = border ? 1.0F : o % 2 == 0 ? 0.25F : 0.75F;
    weight[kOut + o] = border ? 0.0F : 1 - weight[o];
  }
  for (int64_t b = 0; b < kOut; b += kBand) {
    first.push_back(start[b]);
    last.push_back(start[b + kBand - 1] + count[b + kBand - 1]);
  }
  const kernels::Taps taps{kIn, kOut, start.data(), count.data(), reinterpret_cast<const char*>(weight.data()),
                           2,   1,    kOut - 1};
  std::vector<float> in, expected;
  for (int32_t x : numbers(kPlanes * kIn * kIn, 64)) in.push_back(static_cast<float>(x));
  for (int64_t p = 0; p < kPlanes; p++)
    for (int64_t y = 0; y < kOut; y++)
      for (int64_t x = 0; x < kOut; x++) {
        float sum = 0;
        for (int32_t i = 0; i < count[y]; i++)
          for (int32_t j = 0; j < count[x]; j++)
            sum += weight[i * kOut + y] * weight[j * kOut + x] * in[(p * kIn + start[y] + i) * kIn + start[x] + j];
        expected.push_back(sum);  // exact: sixteenths of small whole numbers
      }
  for_all_threads([&] {
    std::vector<float> out(expected.size());
    kernels::resample_plane(
        nullptr, {reinterpret_cast<const char*>(in.data()), reinterpret_cast<char*>(out.data()), DType::Float,
                  DType::Float, kPlanes, kBand, 24, first.data(), last.data(), taps, taps});
    CHECK(out == expected);
  });
}

}  // namespace
