#include "csrc/engine/engine.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <pthread.h>

#include "csrc/engine/context.h"
#include "csrc/engine/python.h"
#include "csrc/engine/run.h"
#include "csrc/engine/threads.h"

namespace mybackend::engine {
namespace {

constexpr int kMostNested = torch::autograd::MAX_DEPTH;  // runs on one thread besides the first

// The run that base Engine::execute() is about to hand to execute_with_graph_task() on this thread.
thread_local Run* pending_run = nullptr;

// Whether torch was built for another accelerator than this device.
bool knows_another_accelerator() {
  static const bool known = [] {
    for (int type = 0; type < c10::COMPILE_TIME_MAX_DEVICE_TYPES; type++) {
      const auto device = static_cast<c10::DeviceType>(type);
      const bool other =
          device != c10::DeviceType::CPU && device != c10::DeviceType::Meta && device != c10::DeviceType::PrivateUse1;
      if (other && c10::impl::hasDeviceGuardImpl(device)) return true;
    }
    return false;
  }();
  return known;
}

NodePtr take_driver() {
  NodePtr& spare = this_thread().spare_driver;
  if (spare) return std::exchange(spare, NodePtr());
  return make_node<Driver>();
}

}  // namespace

Python& python() {
  static Python table;
  return table;
}

Engine& Engine::get() {
  static Engine* const engine = new Engine;
  return *engine;
}

Engine::Engine() : stock_(&torch::autograd::Engine::get_default_engine()) {
  driver_gradient();  // made now, not under some mode of a user's
}

void Engine::install() {
  installed_ = true;
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& { return get(); });
}

void Engine::uninstall() {
  installed_ = false;
  torch::autograd::set_default_engine_stub([]() -> torch::autograd::Engine& { return get().stock(); });
}

variable_list Engine::execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                              bool accumulate_grad, const edge_list& outputs) {
  TORCH_CHECK(!python().holds_gil(),
              "The autograd engine was called while holding the GIL. If you are using the C++ API, the autograd engine "
              "is an expensive operation that does not require the GIL to be held so you should release it with "
              "'pybind11::gil_scoped_release no_gil;'. If you are not using the C++ API, please report a bug to the "
              "pytorch team.");
  if (compiled_autograd_) return stock_->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  if (!accumulate_grad && outputs.empty()) {  // refused there, with upstream's text
    return stock_->execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  if (roots.empty()) return variable_list(outputs.size());

  variable_list gradients = inputs;
  torch::autograd::validate_outputs(roots, gradients, [](const std::string& problem) { return problem; });

  Run run(roots, gradients, outputs, {keep_graph, create_graph, accumulate_grad});
  run.prepare();
  run.driver = take_driver();

  // Upstream's scheduling of the driver is no event of the user's backward: record nothing until the run begins.
  std::optional<at::RecordFunctionGuard> silence;
  if (at::hasCallbacks() && at::isRecordFunctionEnabled()) {
    run.profiler = at::get_record_function_tls_();
    silence.emplace(/*is_enabled=*/false);
  }
  Run* const outer = std::exchange(pending_run, &run);
  struct Restore {
    Run* outer;
    ~Restore() { pending_run = outer; }
  } restore{outer};
  // Upstream wants a target where gradients are captured: the driver stands for those of the caller.
  edge_list target;
  if (!accumulate_grad) target.emplace_back(run.driver, 0);
  variable_list captured;
  try {
    captured = torch::autograd::Engine::execute({Edge(run.driver, 0)}, {driver_gradient()}, keep_graph, create_graph,
                                                accumulate_grad, target);
  } catch (...) {
    this_thread().failed = std::move(run.failed);
    throw;
  }
  this_thread().spare_driver = std::move(run.driver);
  return captured;
}

c10::intrusive_ptr<at::ivalue::Future> Engine::execute_with_graph_task(const GraphTaskPtr& graph_task,
                                                                       NodePtr graph_root,
                                                                       torch::autograd::InputBuffer&& buffer) {
  Run* const run = std::exchange(pending_run, nullptr);
  if (run == nullptr || graph_root != run->driver) {  // a graph task of someone else's making
    return stock_->execute_with_graph_task(graph_task, std::move(graph_root), std::move(buffer));
  }
  run->describe_to(*graph_task, graph_root.get());
  if (knows_another_accelerator()) graph_task->owner_ = torch::autograd::CPU_DEVICE;
  auto& thread = this_thread();
  const bool outermost = thread.interrupt == nullptr;
  if (outermost) thread.interrupt = &run->interrupt;
  if (thread.nesting <= kMostNested) {
    enter_as_owner(graph_task, graph_root, [&] { run->work(graph_task); });
  } else {
    run_on_another_thread(
        [&] {
          enter_as_owner(graph_task, graph_root, [&] {
            void* const context = python().enter_context();
            run->work(graph_task);
            python().leave_context(context);
          });
        },
        *thread.interrupt);
  }
  if (outermost) thread.interrupt = nullptr;
  return graph_task->future_result_;
}

void Engine::enter(const GraphTaskPtr& graph_task, const NodePtr&,
                   const std::shared_ptr<torch::autograd::ReadyQueue>& queue) {
  if (knows_another_accelerator()) take_cpu_as_device();
  init_local_ready_queue(queue);
  torch::autograd::Engine::thread_main(graph_task);
}

// Upstream's thread_main makes the thread's device current with the guard of every kind of device. A thread that
// upstream knows nothing of has device -2, which the guards of other accelerators refuse (CUDA's, in a torch built for
// it). The only way to give it the CPU, for which nothing is made current, is thread_init; a shutdown task makes that
// return.
void Engine::take_cpu_as_device() {
  thread_local bool taken = false;
  if (std::exchange(taken, true)) return;
  const auto queue = std::make_shared<torch::autograd::ReadyQueue>();
  push_shutdown_task(*queue);
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  torch::autograd::Engine::thread_init(torch::autograd::CPU_DEVICE, queue, /*should_increment=*/false);
  pthread_setname_np(pthread_self(), name);
}

// The Python engine persists a Python exception, then the base marks the graph task as failed.
void Engine::thread_on_exception(const GraphTaskPtr& graph_task, const NodePtr& node, std::exception& error) {
  stock_->thread_on_exception(graph_task, node, error);
}

std::unique_ptr<torch::autograd::AnomalyMetadata> Engine::make_anomaly_metadata() {
  return stock_->make_anomaly_metadata();
}

std::unique_ptr<torch::autograd::SavedVariableHooks> Engine::get_default_saved_variable_hooks() {
  return stock_->get_default_saved_variable_hooks();
}

}  // namespace mybackend::engine
