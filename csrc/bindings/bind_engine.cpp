// The autograd engine's Python entry: run_backward with the arguments and errors of torch._C._ImperativeEngine's.
#include "csrc/bindings/bind.h"
#include "csrc/bindings/engine_python.h"
#include "csrc/engine/engine.h"

namespace mybackend::bindings {

void bind_engine(py::module_& m) {
  engine::Engine::get();  // remembers the stock engine, so before anything replaces it
  install_python_hooks();
  bind_engine_queries(m);
  bind_engine_settings(m);
  bind_engine_policies(m);
  static PyMethodDef run_backward_definition = {"run_backward",
                                                reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run_backward)),
                                                METH_VARARGS | METH_KEYWORDS, nullptr};
  m.attr("run_backward") = py::reinterpret_steal<py::object>(PyCFunction_New(&run_backward_definition, nullptr));
  m.def("engine_install", [] { engine::Engine::get().install(); });
  m.def("engine_uninstall", [] { engine::Engine::get().uninstall(); });
  m.def("engine_installed", [] { return engine::Engine::get().installed(); });
  m.def("engine_set_compiled_autograd", [](bool active) { engine::Engine::get().set_compiled_autograd(active); });
}

}  // namespace mybackend::bindings
