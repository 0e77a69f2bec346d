// Nodes and calls that only C++ can make, for test_cpp_nodes.py, which builds this file:
// nodes that throw what Python cannot raise, a node that counts how many threads are in it, calls of the engine from
// native threads and with the GIL held. For test_policy.py, a policy.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>

#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "csrc/engine/core/policy.h"

namespace {

// What forward made first goes first.
struct OldestFirst : mybackend::engine::core::Policy {
  uint64_t key(const mybackend::engine::core::Candidate& node) const override { return UINT64_MAX - node.sequence; }
};

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

void raise(const std::string& kind) {
  if (kind == "runtime_error") throw std::runtime_error("from C++");
  if (kind == "out_of_range") throw std::out_of_range("from C++");
  if (kind == "invalid_argument") throw std::invalid_argument("from C++");
  if (kind == "bad_alloc") throw std::bad_alloc();
  if (kind == "int") throw 5;
  TORCH_CHECK_INDEX(kind != "IndexError", "from C++");
  TORCH_CHECK_VALUE(kind != "ValueError", "from C++");
  TORCH_CHECK_TYPE(kind != "TypeError", "from C++");
  TORCH_CHECK_NOT_IMPLEMENTED(kind != "NotImplementedError", "from C++");
  TORCH_CHECK(kind != "Error", "from C++");
}

struct Throwing : torch::autograd::Function<Throwing> {
  static Variable forward(AutogradContext* context, const Variable& x, const std::string& kind) {
    context->saved_data["kind"] = kind;
    return x.clone();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    raise(context->saved_data["kind"].toStringRef());
    return {gradients[0], Variable()};
  }
};

std::atomic<int> inside{0};
std::atomic<int> most_inside{0};

struct Crowded : torch::autograd::Function<Crowded> {
  static Variable forward(AutogradContext*, const Variable& x) { return x.clone(); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    const int now = ++inside;
    int before = most_inside;
    while (before < now && !most_inside.compare_exchange_weak(before, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --inside;
    return gradients;
  }
};

// Runs the backward of `loss` in a new native thread; returns the text of what it threw, or nothing.
std::string backward_in_native_thread(const Variable& loss) {
  std::string error;
  pybind11::gil_scoped_release no_gil;
  std::thread([&] {
    try {
      loss.backward();
    } catch (python_error& caught) {
      caught.persist();
      error = std::string("python_error: ") + caught.what();
    } catch (const std::exception& caught) {
      error = caught.what();
    }
  }).join();
  return error;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("throwing", [](const Variable& x, const std::string& kind) { return Throwing::apply(x, kind); });
  module.def("oldest_first", [] {
    return pybind11::capsule(static_cast<mybackend::engine::core::Policy*>(new OldestFirst),
                             "mybackend::engine::core::Policy");
  });
  module.def("crowded", [](const Variable& x) { return Crowded::apply(x); });
  module.def("most_inside_crowded", [] { return most_inside.load(); });
  module.def("backward_in_native_thread", &backward_in_native_thread);
  module.def("backward_with_gil", [](const Variable& loss) { loss.backward(); });
  module.def("backward_without_gil", [](const Variable& loss) {
    pybind11::gil_scoped_release no_gil;
    loss.backward();
  });
  module.def("grad", [](const Variable& loss, const variable_list& inputs) {
    pybind11::gil_scoped_release no_gil;
    return torch::autograd::grad({loss}, inputs);
  });
  module.def("queue_callback_outside", [] {
    pybind11::gil_scoped_release no_gil;
    torch::autograd::Engine::get_default_engine().queue_callback([] {});
  });
}
