// Named test cases without a dependency: TEST_CASE("subject verb phrase") { CHECK(...); CHECK_EQ(a, b); }
//
// check_main.cpp runs all cases whose name contains argv[1] and exits with the number that failed.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace test {

struct Case {
  const char* name;
  void (*body)();
};

inline std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

struct Listed {
  Listed(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

// Marks the running case as failed; it goes on.
void fail(const char* file, int line, const std::string& what);

template <class T>
std::string shown(const T& value) {
  std::ostringstream out;
  if constexpr (requires { out << value; })
    out << value;
  else
    out << static_cast<long long>(value);
  return out.str();
}

}  // namespace test

#define TEST_NAME_2(a, b) a##b
#define TEST_NAME(a, b) TEST_NAME_2(a, b)
#define TEST_CASE(name)                                                                                  \
  static void TEST_NAME(test_case_, __LINE__)();                                                         \
  static const ::test::Listed TEST_NAME(test_listed_, __LINE__){name, &TEST_NAME(test_case_, __LINE__)}; \
  static void TEST_NAME(test_case_, __LINE__)()

#define CHECK(condition)                                            \
  do {                                                              \
    if (!(condition)) ::test::fail(__FILE__, __LINE__, #condition); \
  } while (0)

#define CHECK_EQ(left, right)                                                                             \
  do {                                                                                                    \
    const auto left_ = (left);                                                                            \
    const auto right_ = (right);                                                                          \
    if (!(left_ == right_))                                                                               \
      ::test::fail(__FILE__, __LINE__,                                                                    \
                   #left " == " #right ", but " + ::test::shown(left_) + " != " + ::test::shown(right_)); \
  } while (0)
