#include <atomic>
#include <cstdio>
#include <cstring>

#include "test/cpp/check.h"

namespace test {
namespace {
std::atomic<int> failures_of_case{0};
}

void fail(const char* file, int line, const std::string& what) {
  failures_of_case++;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

}  // namespace test

int main(int argc, char** argv) {
  const char* wanted = argc > 1 ? argv[1] : "";
  int ran = 0, failed = 0;
  for (const test::Case& test_case : test::cases()) {
    if (std::strstr(test_case.name, wanted) == nullptr) continue;
    test::failures_of_case = 0;
    test_case.body();
    ran++;
    if (test::failures_of_case == 0) continue;
    failed++;
    std::fprintf(stderr, "FAILED: %s\n", test_case.name);
  }
  std::printf("%d of %d test cases passed\n", ran - failed, ran);
  return ran == 0 || failed > 0;
}
