#include "csrc/bindings/bind.h"
#include "csrc/runtime/graph.h"

namespace mybackend::bindings {

void bind_graph(py::module_& m) {
  using runtime::Graph;
  m.def("new_pool_id", torch::wrap_pybind_function([] { return runtime::new_pool_id(); }));
  py::class_<Graph>(m, "Graph")
      .def(py::init<bool>(), py::arg("keep_graph") = false)
      .def("capture_begin", torch::wrap_pybind_function_no_gil(&Graph::capture_begin),
           py::arg("pool") = c10::MempoolId_t{0, 0})
      .def("capture_end", torch::wrap_pybind_function_no_gil(&Graph::capture_end))
      .def("instantiate", torch::wrap_pybind_function_no_gil(&Graph::instantiate))
      .def("replay", torch::wrap_pybind_function_no_gil(&Graph::replay))
      .def("reset", torch::wrap_pybind_function_no_gil(&Graph::reset))
      .def("pool", torch::wrap_pybind_function(&Graph::pool));
}

}  // namespace mybackend::bindings
