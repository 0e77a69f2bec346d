#include "csrc/bindings/bind.h"
#include "csrc/runtime/stream.h"

namespace mybackend::bindings {

void bind_streams(py::module_& m) {
  m.def("stream_priority_range", torch::wrap_pybind_function([] { return runtime::stream_priority_range(); }));
  m.def("stream_priority",
        torch::wrap_pybind_function([](c10::Stream stream) { return runtime::priority_of(stream); }));
  m.def("stream_handle", torch::wrap_pybind_function([](c10::Stream stream) {
          return reinterpret_cast<intptr_t>(runtime::handle_of(stream));
        }));
  m.def("default_stream", torch::wrap_pybind_function([](int64_t device) {
          return runtime::default_stream(runtime::resolve_device_index(device));
        }));
  m.def("is_current_stream_capturing", torch::wrap_pybind_function([] {
          return runtime::device_count() > 0 &&
                 runtime::is_capturing(runtime::current_stream(runtime::current_device()));
        }));
}

}  // namespace mybackend::bindings
