// The areas of mybackend._C, one file each (bind_<area>.cpp): argument conversion and nothing else.
#pragma once

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

namespace mybackend::bindings {

void bind_device(py::module_& m);
void bind_memory(py::module_& m);
void bind_streams(py::module_& m);
void bind_random(py::module_& m);
void bind_graph(py::module_& m);
void bind_fallback(py::module_& m);
void bind_tensor(py::module_& m);
void bind_engine(py::module_& m);
void bind_compile(py::module_& m);

}  // namespace mybackend::bindings
