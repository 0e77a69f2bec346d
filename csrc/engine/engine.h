// Engine: upstream's Engine with the graph run by our scheduler (run.h).
//
// Upstream's Engine::execute is called with one root of ours instead of the caller's graph. It builds the GraphTask,
// captures thread-local state and, at the end, synchronises streams, runs the final callbacks, replays warnings and
// completes the future. Between those, execute_with_graph_task() is ours: it enters the GraphTask's context
// (context.h) and there runs the caller's graph. See docs/engine.md.
//
// Lifetime: one instance for the process, never destroyed, since threads of ours may outlive static destructors.
#pragma once

#include "csrc/engine/node.h"

namespace mybackend::engine {

class Engine final : public torch::autograd::Engine {
 public:
  static Engine& get();

  // Makes this the engine that C++ callers get, or gives them back the one they had. Not to be called while a
  // backward runs in another thread.
  void install();
  void uninstall();
  bool installed() const { return installed_; }

  // While true every backward is handed to the stock engine, since the compiler's hook is inside of it.
  void set_compiled_autograd(bool active) { compiled_autograd_ = active; }

  variable_list execute(const edge_list& roots, const variable_list& inputs, bool keep_graph, bool create_graph,
                        bool accumulate_grad, const edge_list& outputs = {}) override;
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const GraphTaskPtr& graph_task, NodePtr graph_root,
                                                                 torch::autograd::InputBuffer&& buffer) override;
  void thread_on_exception(const GraphTaskPtr& graph_task, const NodePtr& node, std::exception& error) override;
  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override;
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override;

  // Runs `driver`, a node of ours, on this thread inside of the graph task's context; a bridge to protected members.
  void enter(const GraphTaskPtr& graph_task, const NodePtr& driver,
             const std::shared_ptr<torch::autograd::ReadyQueue>& queue);
  void use_queue(const std::shared_ptr<torch::autograd::ReadyQueue>& queue) { init_local_ready_queue(queue); }

  torch::autograd::Engine& stock() { return *stock_; }

 private:
  Engine();
  void take_cpu_as_device();

  torch::autograd::Engine* stock_;
  std::atomic<bool> installed_{false};
  std::atomic<bool> compiled_autograd_{false};
};

}  // namespace mybackend::engine
