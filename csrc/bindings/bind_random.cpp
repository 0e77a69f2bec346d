#include "csrc/bindings/bind.h"
#include "csrc/runtime/generator.h"

namespace mybackend::bindings {

void bind_random(py::module_& m) {
  m.def("default_generator", torch::wrap_pybind_function([](int64_t device) {
          return runtime::default_generator(runtime::resolve_device_index(device));
        }));
}

}  // namespace mybackend::bindings
