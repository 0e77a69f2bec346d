#include "csrc/engine/context.h"

#include <limits>

#include "csrc/engine/engine.h"

namespace torch::autograd {

// Declared in upstream's header but not exported by its library; a task is put into a queue of ours only.
__attribute__((visibility("hidden"))) void ReadyQueue::push(NodeTask item, bool count) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (count) {
      if (auto graph_task = item.base_.lock()) ++graph_task->outstanding_tasks_;
    }
    heap_.push(std::move(item));
  }
  not_empty_.notify_one();
}

__attribute__((visibility("hidden"))) int NodeTask::getReentrantDepth() const {
  const auto graph_task = base_.lock();
  return graph_task ? graph_task->reentrant_depth_ : std::numeric_limits<int>::max();
}

}  // namespace torch::autograd

namespace mybackend::engine {

using torch::autograd::InputBuffer;
using torch::autograd::NodeTask;
using torch::autograd::ReadyQueue;

namespace {

// What the driver does on this thread; set just before the context is entered.
thread_local const std::function<void()>* pending_work = nullptr;

}  // namespace

const Tensor& driver_gradient() {
  static const Tensor scalar = at::zeros({}, at::kCPU);
  return scalar;
}

Driver::Driver() : Node(/*sequence_nr=*/UINT64_MAX) {
  add_input_metadata(driver_gradient());
}

variable_list Driver::apply(variable_list&&) {
  (*std::exchange(pending_work, nullptr))();
  return {};
}

void push_shutdown_task(ReadyQueue& queue) {
  queue.push(NodeTask(GraphTaskPtr(), NodePtr(), InputBuffer(0), /*isShutdownTask=*/true), /*count=*/false);
}

void enter_as_owner(const GraphTaskPtr& graph_task, const NodePtr& driver, const std::function<void()>& work) {
  pending_work = &work;
  graph_task->cpu_ready_queue_->push(NodeTask(graph_task, driver, InputBuffer(0)));
  Engine::get().enter(graph_task, driver, graph_task->cpu_ready_queue_);
}

void enter_as_helper(const GraphTaskPtr& graph_task, const NodePtr& driver, const std::function<void()>& work) {
  // A queue of its own, since a failed backward may leave the shutdown task behind.
  const auto queue = std::make_shared<ReadyQueue>();
  const std::function<void()> work_and_leave = [&] {
    work();
    push_shutdown_task(*queue);
  };
  pending_work = &work_and_leave;
  queue->push(NodeTask(graph_task, driver, InputBuffer(0)));
  Engine::get().enter(graph_task, driver, queue);
}

}  // namespace mybackend::engine
