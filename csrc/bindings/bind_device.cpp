#include "csrc/bindings/bind.h"
#include "csrc/runtime/device.h"
#include "csrc/runtime/errors.h"
#include "csrc/runtime/first_use.h"

namespace mybackend::bindings {
namespace {

std::string describe(const device::Properties& p) {
  return c10::str("DeviceProperties(name='", p.name, "', major=", p.major, ", minor=", p.minor,
                  ", total_memory=", p.total_memory / (1 << 20), "MB, multi_processor_count=", p.multi_processor_count,
                  ")");
}

// The first use may happen in any thread and under any lock: Python's main thread calls back when it is free to.
PyObject* first_use_callback = nullptr;

int call_first_use(void*) {
  PyObject* const result = PyObject_CallNoArgs(first_use_callback);
  if (result == nullptr) PyErr_WriteUnraisable(first_use_callback);
  Py_XDECREF(result);
  return 0;
}

}  // namespace

void bind_device(py::module_& m) {
  using device::Properties;
  py::class_<Properties>(m, "DeviceProperties")
      .def_property_readonly("name", [](const Properties& p) { return std::string(p.name); })
      .def_readonly("major", &Properties::major)
      .def_readonly("minor", &Properties::minor)
      .def_readonly("total_memory", &Properties::total_memory)
      .def_readonly("multi_processor_count", &Properties::multi_processor_count)
      .def_readonly("max_threads_per_block", &Properties::max_threads_per_block)
      .def_readonly("max_threads_per_multi_processor", &Properties::max_threads_per_multi_processor)
      .def_readonly("warp_size", &Properties::warp_size)
      .def_readonly("shared_memory_per_block", &Properties::shared_memory_per_block)
      .def_readonly("L2_cache_size", &Properties::l2_cache_size)
      .def_readonly("is_integrated", &Properties::integrated)
      .def("__repr__", describe);

  m.def("driver", torch::wrap_pybind_function([] { return std::string(device::api().name); }));
  m.def("device_count", [] { return int(runtime::device_count()); });
  m.def("current_device", torch::wrap_pybind_function([] { return int(runtime::current_device()); }));
  m.def("exchange_device", torch::wrap_pybind_function([](int device) {
          return int(runtime::exchange_device(static_cast<runtime::DeviceIndex>(device)));
        }));
  m.def("set_device", torch::wrap_pybind_function([](int64_t device) {
          runtime::check_device_index(device);
          runtime::set_device(static_cast<runtime::DeviceIndex>(device));
        }));
  m.def("check_device", torch::wrap_pybind_function([](int64_t device) { runtime::check_device_index(device); }));
  m.def("synchronize", torch::wrap_pybind_function_no_gil(
                           [](int64_t device) { runtime::synchronize_device(runtime::resolve_device_index(device)); }));
  m.def("device_properties", torch::wrap_pybind_function([](int64_t device) {
          return runtime::device_properties(runtime::resolve_device_index(device));
        }));
  m.def("can_access_peer", torch::wrap_pybind_function([](int device, int peer) {
          runtime::check_device_index(device);
          runtime::check_device_index(peer);
          int can = 0;
          MB_DEVICE_CHECK(device::api().device_can_access_peer(&can, device, peer));
          return can != 0;
        }));
  m.def("is_initialized", [] { return runtime::any_context(); });
  m.def("on_first_use", [](py::function callback) {
    first_use_callback = callback.release().ptr();
    runtime::on_first_context([] { Py_AddPendingCall(call_first_use, nullptr); });
  });
  m.def("is_in_bad_fork", [] { return runtime::in_bad_fork(); });
}

}  // namespace mybackend::bindings
