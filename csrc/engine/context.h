// The context of a GraphTask: what code all over PyTorch finds in thread-local variables while a backward runs (the
// current graph task, grad mode, warning handler, checkpoint validity). The setters are hidden inside libtorch, so
// the context is entered by letting upstream's Engine::thread_main run one node of ours, the driver, whose apply()
// does the work.
#pragma once

#include <functional>

#include "csrc/engine/node.h"

namespace mybackend::engine {

// The node that upstream's engine sees instead of the caller's graph. One for each backward; every thread that works
// for that backward enters through it.
class Driver final : public Node {
 public:
  Driver();
  std::string name() const override { return "GraphRoot"; }
  variable_list apply(variable_list&& inputs) override;
};

// What upstream's engine passes to the driver, which ignores it.
const Tensor& driver_gradient();

// Makes upstream's thread_main return when it has run what else is in the queue.
void push_shutdown_task(torch::autograd::ReadyQueue& queue);

// Runs `work` inside of the context. On the thread that called backward (`owner`), returning completes the graph
// task: final callbacks run and the future gets its value, or its error. On another thread it only leaves the context.
void enter_as_owner(const GraphTaskPtr& graph_task, const NodePtr& driver, const std::function<void()>& work);
void enter_as_helper(const GraphTaskPtr& graph_task, const NodePtr& driver, const std::function<void()>& work);

}  // namespace mybackend::engine
