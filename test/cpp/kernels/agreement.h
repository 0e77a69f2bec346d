// What the tests of kernels on real threads share: numbers to compute with, and the comparison of any number of threads
// with one.
#pragma once

#include <cmath>
#include <vector>

#include "csrc/device/portable.h"
#include "test/cpp/check.h"

namespace test {

using Floats = std::vector<float>;
constexpr int kThreads[] = {3, 32};

inline Floats numbers(int64_t count, int seed = 13) {
  Floats values;
  for (int64_t i = 0; i < count; i++) values.push_back(float((i * 7919 + seed) % 1009 - 500) / 250.0f);
  return values;
}

inline bool close(const Floats& a, const Floats& b) {
  for (size_t i = 0; i < a.size(); i++)
    if (!(std::fabs(a[i] - b[i]) <= 1e-4f * (1 + std::fabs(b[i])))) return false;
  return a.size() == b.size();
}

// `run` fills one array of `size` elements.
template <class Run>
void agrees_for_all_threads(int64_t size, Run run) {
  Floats expected(size_t(size), -1.0f);
  mybackend::device::test_threads = 1;
  run(expected.data());
  for (int threads : kThreads) {
    Floats result(size_t(size), -1.0f);
    mybackend::device::test_threads = threads;
    run(result.data());
    CHECK(close(result, expected));
  }
}

}  // namespace test
