#include <pybind11/stl.h>

#include "csrc/aten/fallback.h"
#include "csrc/bindings/bind.h"

namespace mybackend::bindings {

void bind_fallback(py::module_& m) {
  m.def("fallbacks", &aten::fallbacks);
  m.def("reset_fallbacks", &aten::reset_fallbacks);
}

}  // namespace mybackend::bindings
