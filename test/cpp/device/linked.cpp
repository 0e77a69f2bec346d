// Kernels linked into a test and built with real threads: found by name, called like any other.
#include <vector>

#include "test/cpp/check.h"
#include "test/cpp/device/sample_kernel.h"
#include "test/cpp/linked_kernels.h"

namespace {

TEST_CASE("a kernel linked into the test runs with real threads when it is called by name") {
  test::use_linked_kernels();
  std::vector<float> in(200, 2.f), out(200);
  test::sample(nullptr, test::SampleArgs{in.data(), out.data(), 200});
  CHECK(out == std::vector<float>(200, 2.f / 400.f));
}

}  // namespace
