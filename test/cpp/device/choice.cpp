// Which driver is used, and that a wrong choice is explained. Each case asks in a child: the choice is made once.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "csrc/device/api.h"
#include "csrc/device/check.h"
#include "test/cpp/check.h"

using namespace mybackend::device;

namespace {

// What `body` returns in a child process with these variables set.
template <class F>
std::string answer(std::initializer_list<std::pair<const char*, const char*>> variables, F body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  if (fork() == 0) {
    unsetenv("MYBACKEND_DRIVER");
    for (auto [name, value] : variables) setenv(name, value, 1);
    std::string text;
    try {
      text = body();
    } catch (const std::exception& error) {
      text = error.what();
    }
    if (write(ends[1], text.data(), text.size()) != ssize_t(text.size())) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, size_t(count));
  close(ends[0]);
  wait(nullptr);
  return text;
}

std::string chosen() {
  return api().name;
}
bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("the host driver is used when it is asked for") {
  CHECK_EQ(answer({{"MYBACKEND_DRIVER", "host"}}, chosen), std::string("host"));
}

TEST_CASE("the host driver is used where no CUDA driver library lies beside the program") {
  CHECK_EQ(answer({}, chosen), std::string("host"));
}

TEST_CASE("an absent CUDA driver is an error when it is asked for") {
  const std::string text = answer({{"MYBACKEND_DRIVER", "cuda"}}, chosen);
  CHECK(contains(text, "MYBACKEND_DRIVER=cuda cannot be used"));
  CHECK(contains(text, "libmb_driver_cuda.so"));
}

TEST_CASE("an unknown driver is an error that names the known ones") {
  CHECK_EQ(answer({{"MYBACKEND_DRIVER", "metal"}}, chosen),
           std::string("MYBACKEND_DRIVER='metal' is unknown: expected host or cuda"));
}

TEST_CASE("a third party's table is used when it is installed before first use and refused afterwards") {
  const std::string text = answer({{"MYBACKEND_DRIVER", "host"}}, [] {
    static Api table = host_api();
    table.name = "third";
    set_driver(table);
    std::string seen = api().name;
    try {
      set_driver(table);
    } catch (const std::logic_error& error) {
      seen += std::string(": ") + error.what();
    }
    return seen;
  });
  CHECK(contains(text, "third: set_driver was called after"));
}

TEST_CASE("a variable that makes no sense is named in the error") {
  CHECK(contains(answer({{"MYBACKEND_HOST_MEMORY", "lots"}}, chosen), "MYBACKEND_HOST_MEMORY='lots'"));
  CHECK(contains(answer({{"MYBACKEND_HOST_DEVICES", "65"}}, chosen), "MYBACKEND_HOST_DEVICES='65'"));
  CHECK(contains(answer({{"MYBACKEND_HOST_STREAMS", "later"}}, chosen), "MYBACKEND_HOST_STREAMS='later'"));
#if defined(__x86_64__)
  CHECK(contains(answer({{"MYBACKEND_HOST_ISA", "v9"}}, chosen), "MYBACKEND_HOST_ISA='v9'"));
#endif
}

TEST_CASE("the environment sets devices and memory") {
  const std::string text = answer({{"MYBACKEND_HOST_DEVICES", "3"}, {"MYBACKEND_HOST_MEMORY", "5M"}}, [] {
    int count = 0;
    size_t free_bytes = 0, total = 0;
    void* pointer = nullptr;
    MB_CHECK(api().get_device_count(&count));
    MB_CHECK(api().mem_get_info(&free_bytes, &total));
    MB_CHECK(api().malloc(&pointer, 5 << 20));
    const bool full = api().malloc(&pointer, 1) == Status::OutOfMemory;
    return std::to_string(count) + " " + std::to_string(total) + (full ? " full" : "");
  });
  CHECK_EQ(text, std::string("3 5242880 full"));
}

TEST_CASE("no devices is what the count says") {
  const std::string text = answer({{"MYBACKEND_HOST_DEVICES", "0"}}, [] {
    int count = -1;
    const Status status = api().get_device_count(&count);
    return std::to_string(count) + " " + api().get_error_name(status);
  });
  CHECK_EQ(text, std::string("0 cudaErrorNoDevice"));
}

TEST_CASE("a missing kernel library is named") {
  CHECK(contains(answer({{"MYBACKEND_DRIVER", "host"}}, [] { return api().find_kernel("x") ? "" : "none"; }),
                 "libmb_kernels_host_"));
}

TEST_CASE("a failed call names the expression, the error and CUDA's name for it") {
  const std::string text = answer({{"MYBACKEND_DRIVER", "host"}}, [] {
    MB_CHECK(api().set_device(99));
    return "no error";
  });
  CHECK(contains(text, "mybackend host driver error: invalid device ordinal (cudaErrorInvalidDevice)"));
  CHECK(contains(text, "api().set_device(99)"));
}

}  // namespace
