// Kernel libraries: the one for this CPU is opened, kernels are found by name and run on streams.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "csrc/device/check.h"
#include "csrc/device/host_kernels.h"
#include "test/cpp/check.h"
#include "test/cpp/device/sample_kernel.h"

using namespace mybackend::device;

namespace {

const bool host_asked = setenv("MYBACKEND_DRIVER", "host", 1) == 0;

TEST_CASE("a kernel of the library is called by name and runs on the stream") {
  Stream stream = nullptr;
  float *in = nullptr, *out = nullptr;
  MB_CHECK(api().stream_create(&stream, 0));
  MB_CHECK(api().malloc(reinterpret_cast<void**>(&in), 16));
  MB_CHECK(api().malloc(reinterpret_cast<void**>(&out), 16));
  const std::vector<float> values{1, 2, 3, 2};
  std::vector<float> seen(4);
  MB_CHECK(api().memcpy_async(in, values.data(), 16, CopyKind::HostToDevice, stream));
  test::sample(stream, test::SampleArgs{in, out, 4});
  MB_CHECK(api().memcpy_async(seen.data(), out, 16, CopyKind::DeviceToHost, stream));
  MB_CHECK(api().stream_synchronize(stream));
  CHECK(seen == (std::vector<float>{0.125f, 0.25f, 0.375f, 0.25f}));
  MB_CHECK(api().free(in));
  MB_CHECK(api().free(out));
  MB_CHECK(api().stream_destroy(stream));
}

TEST_CASE("a kernel that the library lacks is an error that names it") {
  CHECK(api().find_kernel("sample_absent") == nullptr);
  std::string what;
  try {
    test::sample_absent(nullptr, test::SampleArgs{});
  } catch (const std::runtime_error& error) {
    what = error.what();
  }
  CHECK(what.find("'sample_absent' is missing from the host driver's kernel library") != std::string::npos);
}

#if defined(__x86_64__)
TEST_CASE("properties show the instruction set level and MYBACKEND_HOST_ISA forces one") {
  Properties properties;
  MB_CHECK(api().get_device_properties(&properties, 0));
  const char* forced = std::getenv("MYBACKEND_HOST_ISA");
  CHECK(properties.major == 3 || properties.major == 4);
  if (forced != nullptr) CHECK_EQ(properties.major, forced[1] - '0');
  CHECK(properties.total_memory > 0 && properties.name[0] != '\0');
}
#endif

}  // namespace
