// The engine's Python side: the entry that Python calls, and what the engine asks of Python (csrc/engine/python.h).
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "csrc/engine/node.h"

namespace mybackend::bindings {

// run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs=None, allow_unreachable=False,
//              accumulate_grad=False)
PyObject* run_backward(PyObject* self, PyObject* arguments, PyObject* keywords);

void install_python_hooks();
void bind_engine_queries(py::module_& m);
void bind_engine_settings(py::module_& m);
void bind_engine_policies(py::module_& m);

// The node behind an object of torch.autograd.graph.Node.
engine::NodePtr node_of(PyObject* object);

}  // namespace mybackend::bindings
