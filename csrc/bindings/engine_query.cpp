// Questions about the running backward that torch._C answers from thread-local variables which only libtorch can set.
// Each returns None, or nothing, where the thread works for no backward of ours: the caller then asks upstream.
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/engine_python.h"
#include "csrc/engine/run.h"

namespace mybackend::bindings {
namespace {

// The innermost backward of this thread if it is ours.
engine::Run* current_run() {
  engine::Run* const run = engine::this_thread().run;
  if (run == nullptr) return nullptr;
  const int id = torch::autograd::get_current_graph_task_id();
  return id >= 0 && run->graph_task_id() == static_cast<uint64_t>(id) ? run : nullptr;
}

py::object to_python(engine::Node* node) {
  return py::reinterpret_steal<py::object>(torch::autograd::functionToPyObject(node->getptr()));
}

py::object current_node() {
  engine::Node* const node = current_run() != nullptr ? engine::this_thread().node : nullptr;
  return node != nullptr ? to_python(node) : py::none();
}

py::object execution_order() {
  const engine::Run* const run = current_run();
  if (run == nullptr) return py::none();
  py::list nodes;
  for (engine::Node* node : run->execution_order()) nodes.append(to_python(node));
  return nodes;
}

py::object will_execute(const py::object& given) {
  const engine::Run* const run = current_run();
  if (run == nullptr) return py::none();
  return py::bool_(run->will_run(node_of(given.ptr()).get()));
}

}  // namespace

void bind_engine_queries(py::module_& m) {
  m.def("engine_current_node", torch::wrap_pybind_function(current_node));
  m.def("engine_execution_order", torch::wrap_pybind_function(execution_order));
  m.def("engine_will_execute", torch::wrap_pybind_function(will_execute));
}

}  // namespace mybackend::bindings
