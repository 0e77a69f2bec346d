#include "csrc/bindings/engine_python.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/PyInterpreter.h>

#include "csrc/engine/python.h"

namespace mybackend::bindings {
namespace {

unsigned long main_thread = 0;

bool holds_gil() {
  return PyGILState_Check() != 0;
}

bool is_main_thread() {
  return PyThread_get_thread_ident() == main_thread;
}

void check_signals() {
  pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return;
  python_error error;
  error.persist();
  throw std::move(error);
}

void* attach_thread() {
  pybind11::gil_scoped_acquire gil;
  gil.inc_ref();  // the thread state outlives this scope
  return PyThreadState_Get();
}

void detach_thread(void*) {
  if (!Py_IsInitialized()) return;
  pybind11::gil_scoped_acquire gil;
  gil.dec_ref();
}

void wait_for_gil() {
  pybind11::gil_scoped_acquire gil;
}

// The wrapper around run_backward keeps a copy of the caller's context there.
void* enter_context() {
  if (!at::impl::ThreadLocalPythonObjects::contains("context")) return nullptr;
  pybind11::gil_scoped_acquire gil;
  const auto& kept = at::impl::ThreadLocalPythonObjects::get("context");
  PyObject* const caller = kept->ptr(getPyInterpreter());
  if (!PyContext_CheckExact(caller)) return nullptr;
  PyObject* const copy = PyContext_Copy(caller);  // a context can be entered by one thread at a time
  if (copy == nullptr || PyContext_Enter(copy) != 0) {
    PyErr_Clear();
    Py_XDECREF(copy);
    return nullptr;
  }
  return copy;
}

void leave_context(void* context) {
  if (context == nullptr) return;
  pybind11::gil_scoped_acquire gil;
  PyObject* const copy = static_cast<PyObject*>(context);
  if (PyContext_Exit(copy) != 0) PyErr_Clear();
  Py_DECREF(copy);
}

}  // namespace

void install_python_hooks() {
  const auto threading = pybind11::module_::import("threading");
  main_thread = threading.attr("main_thread")().attr("ident").cast<unsigned long>();
  auto& table = engine::python();
  table.holds_gil = holds_gil;
  table.is_main_thread = is_main_thread;
  table.check_signals = check_signals;
  table.attach_thread = attach_thread;
  table.detach_thread = detach_thread;
  table.wait_for_gil = wait_for_gil;
  table.enter_context = enter_context;
  table.leave_context = leave_context;
}

}  // namespace mybackend::bindings
