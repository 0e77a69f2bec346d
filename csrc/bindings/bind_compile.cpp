// CompiledKernel: what generated code calls once per launch, so a plain CPython type with vectorcall.
#include <Python.h>
//
#include <ATen/ops/empty_strided.h>
#include <structmember.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include "csrc/bindings/bind.h"
#include "csrc/runtime/compiled_kernel.h"

namespace mybackend::bindings {
namespace {

using runtime::CompiledKernel;
using runtime::Slot;

constexpr size_t kMaxSlots = 4096;

struct KernelObject {
  PyObject_HEAD;
  vectorcallfunc vectorcall;
  CompiledKernel* kernel;
  PyObject* resolve;  // called once, before the first launch: returns the path of the compiled object
};

void load(KernelObject* self) {
  const py::object path = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(self->resolve));
  if (!path) throw python_error();
  self->kernel->load(path.cast<std::string>());
}

void fill(Slot& slot, char kind, PyObject* argument, const CompiledKernel& kernel, size_t position) {
  if (kind == 'p') {
    TORCH_CHECK_TYPE(THPVariable_Check(argument), kernel.plan().name, "(): argument ", position,
                     " must be a Tensor, not ", Py_TYPE(argument)->tp_name);
    const at::Tensor& tensor = THPVariable_Unpack(argument);
    TORCH_CHECK(tensor.is_privateuseone(), kernel.plan().name, "(): argument ", position,
                " must be on a mybackend device, but is on ", tensor.device());
    slot.pointer = tensor.data_ptr();
  } else if (kind == 'i') {
    slot.integer = PyLong_AsLongLong(argument);
    if (slot.integer == -1 && PyErr_Occurred() != nullptr) throw python_error();
  } else {
    slot.real = PyFloat_AsDouble(argument);
    if (slot.real == -1 && PyErr_Occurred() != nullptr) throw python_error();
  }
}

// kernel(device index, *arguments)
PyObject* call(PyObject* object, PyObject* const* arguments, size_t flagged_count, PyObject* keywords) {
  HANDLE_TH_ERRORS
  auto* self = reinterpret_cast<KernelObject*>(object);
  CompiledKernel& kernel = *self->kernel;
  const std::string& signature = kernel.plan().signature;
  const size_t count = size_t(PyVectorcall_NARGS(flagged_count));
  TORCH_CHECK_TYPE(keywords == nullptr && count == signature.size() + 1, kernel.plan().name, "(): expected ",
                   signature.size() + 1, " positional arguments, got ", count);
  if (!kernel.loaded()) [[unlikely]]
    load(self);
  const int64_t device = PyLong_AsLongLong(arguments[0]);
  if (device == -1 && PyErr_Occurred() != nullptr) throw python_error();
  Slot slots[kMaxSlots];
  for (size_t i = 0; i < signature.size(); i++) fill(slots[i + 1], signature[i], arguments[i + 1], kernel, i + 1);
  {
    py::gil_scoped_release release;
    kernel.launch(runtime::resolve_device_index(device), slots);
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// CompiledKernel(name, signature, items, work, shape, unit, can_fail, messages, resolve)
PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  HANDLE_TH_ERRORS
  const auto [name, signature, items, work, shape, unit, can_fail, messages, resolve] =
      py::reinterpret_borrow<py::tuple>(arguments)
          .cast<std::tuple<std::string, std::string, runtime::Product, runtime::Product, int, int64_t, bool,
                           std::vector<std::string>, py::object>>();
  auto kernel = std::make_unique<CompiledKernel>(runtime::LaunchPlan{
      name, signature, items, work, static_cast<runtime::LaunchShape>(shape), unit, can_fail, messages});
  TORCH_CHECK(kernel->slots() <= kMaxSlots, name, "(): a compiled kernel takes at most ", kMaxSlots - 1, " arguments");
  PyObject* object = type->tp_alloc(type, 0);
  if (object == nullptr) throw python_error();
  auto* self = reinterpret_cast<KernelObject*>(object);
  self->vectorcall = &call;
  self->kernel = kernel.release();
  self->resolve = py::object(resolve).release().ptr();
  return object;
  END_HANDLE_TH_ERRORS
}

void destroy(PyObject* object) {
  auto* self = reinterpret_cast<KernelObject*>(object);
  delete self->kernel;
  Py_XDECREF(self->resolve);
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* get_name(PyObject* object, void* /*closure*/) {
  const std::string& name = reinterpret_cast<KernelObject*>(object)->kernel->plan().name;
  return PyUnicode_FromStringAndSize(name.data(), Py_ssize_t(name.size()));
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(KernelObject, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef properties[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot type_slots[] = {{Py_tp_new, reinterpret_cast<void*>(&create)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                            {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                            {Py_tp_members, members},
                            {Py_tp_getset, properties},
                            {0, nullptr}};
PyType_Spec type_spec{"mybackend._C.CompiledKernel", sizeof(KernelObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, type_slots};

void sizes_of(PyObject* tuple, c10::SmallVectorImpl<int64_t>& sizes) {
  TORCH_CHECK_TYPE(PyTuple_Check(tuple), "empty_strided(): sizes and strides must be tuples, not ",
                   Py_TYPE(tuple)->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    if (sizes.back() == -1 && PyErr_Occurred() != nullptr) throw python_error();
  }
}

// empty_strided(size, stride, dtype, device index): torch.empty_strided without its parsing of arguments.
PyObject* empty_strided(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  TORCH_CHECK_TYPE(count == 4 && THPDtype_Check(arguments[2]),
                   "empty_strided(): expected (size, stride, dtype, device index)");
  c10::SmallVector<int64_t, 8> size, stride;
  sizes_of(arguments[0], size);
  sizes_of(arguments[1], stride);
  const int64_t device = PyLong_AsLongLong(arguments[3]);
  if (device == -1 && PyErr_Occurred() != nullptr) throw python_error();
  const auto options = at::TensorOptions()
                           .device(c10::Device(runtime::kDeviceType, static_cast<runtime::DeviceIndex>(device)))
                           .dtype(reinterpret_cast<THPDtype*>(arguments[2])->scalar_type);
  return THPVariable_Wrap(at::empty_strided(size, stride, options));
  END_HANDLE_TH_ERRORS
}

PyMethodDef functions[] = {
    {"empty_strided", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&empty_strided)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_compile(py::module_& m) {
  const py::object type = py::reinterpret_steal<py::object>(PyType_FromSpec(&type_spec));
  if (!type) throw py::error_already_set();
  m.attr("CompiledKernel") = type;
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw py::error_already_set();
}

}  // namespace mybackend::bindings
