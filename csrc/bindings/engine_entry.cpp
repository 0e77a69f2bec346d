#include <ATen/LegacyBatchedTensorImpl.h>
#include <ATen/LegacyVmapMode.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/python_cpp_function.h>
#include <torch/csrc/autograd/python_function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/utils/python_numbers.h>

#include "csrc/bindings/engine_python.h"
#include "csrc/engine/engine.h"
#include "csrc/engine/run.h"

namespace mybackend::bindings {
namespace {

using engine::Edge;
using engine::edge_list;
using engine::NodePtr;
using engine::Tensor;
using engine::variable_list;

constexpr const char* kVmapEnding =
    "is being vmapped over). Please call autograd.grad() outside torch.vmap or file a bug report with your use case.";

const char* type_name(PyObject* object) {
  return Py_TYPE(object)->tp_name;
}

void check_not_batched(const Tensor& tensor, const char* kinds, const char* kind, Py_ssize_t index) {
  TORCH_CHECK(!at::isBatchedTensor(tensor),
              "torch.autograd.grad(outputs, inputs, grad_outputs) called inside torch.vmap. We do not support the case "
              "where any ",
              kinds, " are vmapped tensors (", kind, " ", index, " ", kVmapEnding);
}

bool is_gradient_edge(PyObject* object) {
  const int is = PyObject_IsInstance(object, THPGradientEdgeClass);
  if (is < 0) throw python_error();
  return is == 1;
}

Edge parse_gradient_edge(PyObject* object) {
  PyObject* const node = PyTuple_GetItem(object, 0);
  if (node == nullptr) throw python_error();
  PyObject* const number = PyTuple_GetItem(object, 1);
  if (number == nullptr) throw python_error();
  return Edge(node_of(node), static_cast<uint32_t>(THPUtils_unpackLong(number)));
}

void parse_roots(PyObject* tensors, PyObject* grad_tensors, edge_list& roots, variable_list& gradients) {
  const Py_ssize_t count = PyTuple_GET_SIZE(tensors);
  roots.reserve(count);
  gradients.reserve(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const given = PyTuple_GET_ITEM(tensors, i);
    Edge edge;
    const Tensor* output = nullptr;
    if (THPVariable_Check(given)) {
      output = &THPVariable_Unpack(given);
      check_not_batched(*output, "outputs", "output", i);
      edge = torch::autograd::impl::gradient_edge(*output);
    } else if (is_gradient_edge(given)) {
      edge = parse_gradient_edge(given);
    } else {
      TORCH_CHECK(false, "element ", i, " of tensors tuple is neither a Tensor nor a GradientEdge");
    }
    TORCH_CHECK(edge.function, "element ", i, " of tensors does not require grad and does not have a grad_fn");
    roots.push_back(std::move(edge));

    PyObject* const gradient = PyTuple_GET_ITEM(grad_tensors, i);
    if (THPVariable_Check(gradient)) {
      gradients.push_back(THPVariable_Unpack(gradient));
      continue;
    }
    TORCH_CHECK(gradient == Py_None, "element ", i, " of gradients tuple is not a Tensor or None");
    TORCH_CHECK(output != nullptr, "element ", i,
                " of gradients tuple is None, but the corresponding output is a GradientEdge. This is not supported.");
    TORCH_CHECK(!output->requires_grad(), "element ", i,
                " of gradients tuple is None, but the corresponding Tensor requires grad");
  }
}

Edge parse_target(PyObject* given, Py_ssize_t index, bool accumulate_grad) {
  if (!THPVariable_Check(given)) {
    if (is_gradient_edge(given)) return parse_gradient_edge(given);
    TORCH_CHECK(false, "all inputs have to be Tensors or GradientEdges, but got ", type_name(given));
  }
  const Tensor& tensor = THPVariable_Unpack(given);
  check_not_batched(tensor, "inputs", "input", index);
  const auto output_nr = static_cast<uint32_t>(tensor.output_nr());
  NodePtr node = tensor.grad_fn();
  if (!node) node = torch::autograd::impl::try_get_grad_accumulator(tensor);
  if (accumulate_grad) tensor.retain_grad();
  TORCH_CHECK(tensor.requires_grad(), "One of the differentiated Tensors does not require grad");
  // A tensor without an accumulator was never used; a node of its own keeps it apart from edges without a node.
  if (!node) return Edge(engine::make_node<torch::autograd::Identity>(), 0);
  return Edge(std::move(node), output_nr);
}

// A Python object of torch 2.11 does not own its node: nullptr where nothing else does either.
template <class Held>
NodePtr owned(const Held& held) {
  if constexpr (requires { held.lock(); }) {
    return held.lock();
  } else {
    return held;
  }
}

}  // namespace

NodePtr node_of(PyObject* object) {
  if (THPFunction_Check(object)) return owned(reinterpret_cast<THPFunction*>(object)->cdata);
  if (torch::autograd::THPCppFunction_Check(object)) {
    return reinterpret_cast<torch::autograd::THPCppFunction*>(object)->cdata;
  }
  TORCH_CHECK_TYPE(false, "expected an autograd.graph.Node but got ", type_name(object));
}

namespace {

// In anomaly mode upstream prints where the forward call of the failed node was; the exception carries it as well.
void note_forward_trace(const NodePtr& node) {
  pybind11::error_already_set error;
  try {
    const auto object = pybind11::reinterpret_steal<pybind11::object>(torch::autograd::functionToPyObject(node));
    const auto trace = object.attr("metadata").attr("get")("traceback_");
    const std::string text =
        trace.is_none() ? "No forward pass information available. Enable detect anomaly during forward pass for more "
                          "information."
                        : "Traceback of forward call that caused the error:\n" +
                              pybind11::str("").attr("join")(trace).cast<std::string>();
    error.value().attr("add_note")("Error detected in " + node->name() + ". " + text);
  } catch (pybind11::error_already_set&) {
    // An exception type of the user's that takes no notes: it goes on without one.
  }
  error.restore();
}

PyObject* run(PyObject* arguments, PyObject* keywords) {
  HANDLE_TH_ERRORS
  PyObject* tensors = nullptr;
  PyObject* grad_tensors = nullptr;
  PyObject* inputs = nullptr;
  unsigned char keep_graph = 0;
  unsigned char create_graph = 0;
  unsigned char allow_unreachable = 0;
  unsigned char accumulate_grad = 0;
  constexpr const char* names[] = {"tensors", "grad_tensors",      "keep_graph",      "create_graph",
                                   "inputs",  "allow_unreachable", "accumulate_grad", nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OObb|Obb", const_cast<char**>(names), &tensors, &grad_tensors,
                                   &keep_graph, &create_graph, &inputs, &allow_unreachable, &accumulate_grad)) {
    return nullptr;
  }
  TORCH_CHECK(PyTuple_Check(tensors), "tensors argument is expected to be a tuple, but got ", type_name(tensors));
  TORCH_CHECK(PyTuple_Check(grad_tensors), "grad_tensors argument is expected to be a tuple, but got ",
              type_name(grad_tensors));
  TORCH_CHECK(PyTuple_GET_SIZE(tensors) == PyTuple_GET_SIZE(grad_tensors), "got ", PyTuple_GET_SIZE(tensors),
              " tensors and ", PyTuple_GET_SIZE(grad_tensors), " gradients");
  TORCH_CHECK(
      !accumulate_grad || at::impl::VmapMode::current_vmap_level() == 0,
      "backward() called inside torch.vmap. This is not supported, please call backward() outside torch.vmap or "
      "instead use torch.autograd.grad inside torch.vmap");
  edge_list roots;
  variable_list gradients;
  parse_roots(tensors, grad_tensors, roots, gradients);

  edge_list targets;
  if (inputs != nullptr) {
    TORCH_CHECK(PyTuple_CheckExact(inputs), "inputs to run_backward must be a tuple");
    targets.reserve(PyTuple_GET_SIZE(inputs));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); ++i) {
      targets.push_back(parse_target(PyTuple_GET_ITEM(inputs, i), i, accumulate_grad));
    }
  }

  variable_list outputs;
  {
    pybind11::gil_scoped_release no_gil;
    outputs = engine::Engine::get().execute(roots, gradients, keep_graph, create_graph, accumulate_grad, targets);
  }
  if (accumulate_grad || inputs == nullptr) Py_RETURN_NONE;
  const Py_ssize_t count = PyTuple_GET_SIZE(inputs);
  THPObjectPtr result{PyTuple_New(count)};
  if (!result) return nullptr;
  for (Py_ssize_t i = 0; i < count; ++i) {
    TORCH_CHECK(allow_unreachable || outputs[i].defined(), "The differentiated Tensor at index ", i,
                " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    PyTuple_SET_ITEM(result.get(), i, THPVariable_Wrap(outputs[i]));
  }
  return result.release();
  END_HANDLE_TH_ERRORS
}

}  // namespace

PyObject* run_backward(PyObject*, PyObject* arguments, PyObject* keywords) {
  NodePtr& failed = engine::this_thread().failed;
  failed = NodePtr();
  PyObject* const result = run(arguments, keywords);
  if (failed && result == nullptr) note_forward_trace(std::exchange(failed, NodePtr()));
  return result;
}

}  // namespace mybackend::bindings
