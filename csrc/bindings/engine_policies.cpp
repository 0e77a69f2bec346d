// Policies from Python: by name, and new ones whose key a Python function gives, or a capsule with one written in C++.
#include "csrc/engine/policies.h"

#include "csrc/bindings/bind.h"
#include "csrc/bindings/engine_python.h"
#include "csrc/engine/settings.h"

namespace mybackend::bindings {
namespace {

using engine::core::Candidate;
using engine::core::Policy;

constexpr const char* kCapsule = "mybackend::engine::core::Policy";

// Calls `key` for every node that becomes ready. Ownership: holds the function, for good.
class PythonPolicy final : public Policy {
 public:
  PythonPolicy(std::string name, py::object key) : name_(std::move(name)), key_(key.release().ptr()) {}

  uint64_t key(const Candidate& node) const override {
    const py::gil_scoped_acquire gil;
    const auto result = py::reinterpret_steal<py::object>(PyObject_CallOneArg(key_, py::cast(node).ptr()));
    if (!result) rethrow();
    const unsigned long long value = PyLong_Check(result.ptr()) ? PyLong_AsUnsignedLongLong(result.ptr()) : -1;
    if (PyErr_Occurred() || !PyLong_Check(result.ptr())) {
      PyErr_Clear();
      PyErr_Format(PyExc_ValueError, "policy '%s': the key has to be an int from 0 to 2**64 - 1, but got %R",
                   name_.c_str(), result.ptr());
      rethrow();
    }
    return value;
  }

 private:
  // The engine passes the exception on to who called backward, perhaps in another thread.
  [[noreturn]] static void rethrow() {
    python_error error;
    error.persist();
    throw std::move(error);
  }

  const std::string name_;
  PyObject* const key_;
};

void register_policy(const std::string& name, const py::object& key) {
  if (PyCapsule_IsValid(key.ptr(), kCapsule)) {
    engine::register_policy(name, static_cast<const Policy*>(PyCapsule_GetPointer(key.ptr(), kCapsule)));
    return;
  }
  TORCH_CHECK_TYPE(PyCallable_Check(key.ptr()), "register_policy: key: expected a function or a capsule named '",
                   kCapsule, "', but got ", Py_TYPE(key.ptr())->tp_name);
  auto policy = std::make_unique<PythonPolicy>(name, key);
  engine::register_policy(name, policy.get());
  policy.release();
}

}  // namespace

void bind_engine_policies(py::module_& m) {
  py::class_<Candidate>(m, "Candidate")
      .def_readonly("sequence", &Candidate::sequence)
      .def_readonly("bytes_in", &Candidate::bytes_in)
      .def_readonly("bytes_out", &Candidate::bytes_out)
      .def_readonly("arrival", &Candidate::arrival);
  m.def("engine_policies", engine::policy_names);
  m.def("engine_policy", [] { return engine::name_of(engine::settings().policy); });
  m.def("engine_set_policy", torch::wrap_pybind_function([](const std::string& name) {
          engine::settings().policy = engine::policy_named(name);
        }));
  m.def("engine_register_policy", torch::wrap_pybind_function(register_policy));
}

}  // namespace mybackend::bindings
