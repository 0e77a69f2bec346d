// The N-thread build of portable.h: collectives give the one-thread answer for any number of threads, silently under
// ThreadSanitizer. Built with MB_TEST_THREADS.
#include <vector>

#include "csrc/device/portable.h"
#include "test/cpp/check.h"

using namespace mybackend::device;

namespace {

constexpr int kThreads[] = {1, 3, 32, 128};

template <class F>
void for_thread_counts(F f) {
  for (int threads : kThreads) {
    test_threads = threads;
    f();
  }
  test_threads = MB_TEST_THREADS;
}

// A row per block: every collective, one after the other, with no barrier of the kernel's own between them.
struct Collect {
  const int64_t* in;
  int64_t* out;
  int64_t n;
  MB_DEVICE void operator()(Block block) const {
    const int64_t* row = in + block.index * n;
    const auto at = [=](int64_t i) { return row[i]; };
    const int64_t sum = block.sum<int64_t>(n, at);
    const int64_t high = block.max<int64_t>(n, at);
    const int64_t low = block.min<int64_t>(n, at);
    const int64_t all = block.reduce<int64_t>(n, 0, [](int64_t a, int64_t b) { return a ^ b; }, at);
    if (block.thread != 0) return;
    int64_t* result = out + block.index * 4;
    result[0] = sum, result[1] = high, result[2] = low, result[3] = all;
  }
};

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; i++) values.push_back((i * 7919 + 13) % 1009 - 500);
  return values;
}

TEST_CASE("reductions of any number of threads agree") {
  constexpr int64_t kRows = 3;
  for (int64_t n : {1, 5, 31, 128, 333}) {
    const std::vector<int64_t> in = numbers(kRows * n);
    std::vector<int64_t> expected(kRows * 4, 0);
    for (int64_t r = 0; r < kRows; r++) {
      int64_t* e = &expected[r * 4];
      e[1] = INT64_MIN, e[2] = INT64_MAX;
      for (int64_t i = r * n; i < (r + 1) * n; i++)
        e[0] += in[i], e[1] = std::max(e[1], in[i]), e[2] = std::min(e[2], in[i]), e[3] ^= in[i];
    }
    for_thread_counts([&] {
      std::vector<int64_t> out(kRows * 4);
      launch(nullptr, {kRows, 128, n}, Collect{in.data(), out.data(), n});
      CHECK(out == expected);
    });
  }
}

struct Scan {
  const int64_t* in;
  int64_t* out;
  int64_t* last;
  int64_t n;
  MB_DEVICE void operator()(Block block) const {
    const int64_t total = block.scan<int64_t>(
        n, 100, [](int64_t a, int64_t b) { return a + b; }, [this](int64_t i) { return in[i]; },
        [this](int64_t i, int64_t value) { out[i] = value; });
    if (block.thread == 0) *last = total;
  }
};

TEST_CASE("a scan of any number of threads is the running total after its carry") {
  for (int64_t n : {0, 1, 31, 200}) {
    const std::vector<int64_t> in = numbers(n);
    std::vector<int64_t> expected;
    int64_t total = 100;
    for (int64_t value : in) expected.push_back(total += value);
    for_thread_counts([&] {
      std::vector<int64_t> out(n);
      int64_t last = 0;
      launch(nullptr, {1, 128, n}, Scan{in.data(), out.data(), &last, n});
      CHECK(out == expected);
      CHECK_EQ(last, total);
    });
  }
}

struct Maximum {
  const float* in;
  float* out;
  int64_t n;
  MB_DEVICE void operator()(Block block) const {
    const float peak = block.max<float>(n, [this](int64_t i) { return in[i]; });
    if (block.thread == 0) *out = peak;
  }
};

TEST_CASE("a maximum is NaN wherever the NaN is and minus infinity over nothing") {
  for_thread_counts([] {
    for (size_t where : {0u, 17u, 39u}) {
      std::vector<float> in(40, 1.f);
      in[where] = std::numeric_limits<float>::quiet_NaN();
      float out = 0;
      launch(nullptr, {1, 32, 40}, Maximum{in.data(), &out, 40});
      CHECK(out != out);
    }
    float out = 0;
    launch(nullptr, {1, 32, 0}, Maximum{nullptr, &out, 0});
    CHECK_EQ(out, -std::numeric_limits<float>::infinity());
  });
}

// Reverses rows of 64 through shared memory, which all blocks use in turn.
struct Reverse {
  int* data;
  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, int, tile, 64);
    int* row = data + block.index * 64;
    block.each(64, [&](int64_t i) { tile[i] = row[i]; });
    block.sync();
    block.each(64, [&](int64_t i) { row[i] = tile[63 - i]; });
  }
};

TEST_CASE("threads of a block share memory and blocks use it one after the other") {
  for_thread_counts([] {
    std::vector<int> data(5 * 64);
    for (size_t i = 0; i < data.size(); i++) data[i] = int(i);
    launch(nullptr, {5, 64, 64}, Reverse{data.data()});
    int wrong = 0;
    for (int i = 0; i < 5 * 64; i++) wrong += data[size_t(i)] != i / 64 * 64 + 63 - i % 64;
    CHECK_EQ(wrong, 0);
  });
}

struct Report {
  ErrorRecord* record;
  MB_DEVICE void operator()(Block block) const {
    block.each(64, [this](int64_t i) { report(record, 1, i, i * 2); });
  }
};

TEST_CASE("of many reports one is kept whole") {
  for_thread_counts([] {
    ErrorRecord record{};
    launch(nullptr, {2, 32, 64}, Report{&record});
    CHECK_EQ(record.code, 1);
    CHECK_EQ(record.values[1], record.values[0] * 2);
  });
}

}  // namespace
