#include "csrc/aten/set_data.h"
#include "csrc/bindings/bind.h"

namespace mybackend::bindings {

void bind_tensor(py::module_& m) {
  m.def("set_data", &aten::set_data);
}

}  // namespace mybackend::bindings
