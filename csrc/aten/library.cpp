#include "csrc/aten/library.h"

#include <c10/util/Exception.h>

#include <string_view>

#include "csrc/device/api.h"

namespace mybackend::aten {

const Library& library() {
  static const Library& chosen = []() -> const Library& {
    const std::string_view driver = device::api().name;
    if (driver == "host") return host_library();
    if (driver == "cuda") return cuda_library();
    TORCH_CHECK_NOT_IMPLEMENTED(false, "mybackend: driver '", driver, "' has no library for matrix products");
  }();
  return chosen;
}

}  // namespace mybackend::aten
