// What mybackend.autograd sets and reads: workers, the record of nodes, the backwards that run now.
#include "csrc/engine/settings.h"

#include <mutex>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/engine_python.h"
#include "csrc/engine/watch.h"

namespace mybackend::bindings {
namespace {

using engine::core::BackwardRecord;
using engine::core::NodeRecord;
using Records = std::pair<std::vector<BackwardRecord>, std::vector<NodeRecord>>;

class Recorder final : public engine::core::Observer {
 public:
  void on_node(NodeRecord&& record) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.second.push_back(std::move(record));
  }
  void on_backward(const BackwardRecord& record) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.first.push_back(record);
  }
  Records take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  std::mutex mutex_;
  Records records_;
};

std::shared_ptr<Recorder>& recorder() {
  static auto* const recorder = new std::shared_ptr<Recorder>;
  return *recorder;
}

void start_recording() {
  TORCH_CHECK(recorder() == nullptr, "the autograd engine is being recorded already");
  recorder() = std::make_shared<Recorder>();
  engine::settings().set_observer(recorder());
}

Records stop_recording() {
  TORCH_CHECK(recorder() != nullptr, "the autograd engine is not being recorded");
  engine::settings().set_observer(nullptr);
  return std::exchange(recorder(), nullptr)->take();
}

void set_cpu_workers(int64_t count) {
  TORCH_CHECK_VALUE(count >= 1 && count <= 1024, "cpu_workers: expected a number from 1 to 1024, but got ", count);
  engine::settings().cpu_workers = static_cast<uint32_t>(count);
}

}  // namespace

void bind_engine_settings(py::module_& m) {
  py::class_<NodeRecord>(m, "NodeRecord")
      .def_readonly("name", &NodeRecord::name)
      .def_readonly("sequence", &NodeRecord::sequence)
      .def_readonly("backward", &NodeRecord::backward)
      .def_readonly("depth", &NodeRecord::depth)
      .def_readonly("device", &NodeRecord::device)
      .def_readonly("stream", &NodeRecord::stream)
      .def_readonly("thread", &NodeRecord::thread)
      .def_readonly("ready_ns", &NodeRecord::ready_ns)
      .def_readonly("start_ns", &NodeRecord::start_ns)
      .def_readonly("seat_ns", &NodeRecord::seat_ns)
      .def_readonly("end_ns", &NodeRecord::end_ns)
      .def_readonly("bytes", &NodeRecord::bytes)
      .def_readonly("waited_for", &NodeRecord::waited_for)
      .def_readonly("lock_ns", &NodeRecord::lock_ns)
      .def_readonly("sum_ns", &NodeRecord::sum_ns)
      .def_readonly("sums", &NodeRecord::sums);
  py::class_<BackwardRecord>(m, "BackwardRecord")
      .def_readonly("backward", &BackwardRecord::backward)
      .def_readonly("depth", &BackwardRecord::depth)
      .def_readonly("thread", &BackwardRecord::thread)
      .def_readonly("begin_ns", &BackwardRecord::begin_ns)
      .def_readonly("planned_ns", &BackwardRecord::planned_ns)
      .def_readonly("end_ns", &BackwardRecord::end_ns)
      .def_readonly("nodes", &BackwardRecord::nodes)
      .def_readonly("edges", &BackwardRecord::edges)
      .def_readonly("failed", &BackwardRecord::failed);
  py::class_<engine::WaitingNode>(m, "WaitingNode")
      .def_readonly("name", &engine::WaitingNode::name)
      .def_readonly("index", &engine::WaitingNode::index)
      .def_readonly("device", &engine::WaitingNode::device)
      .def_readonly("missing", &engine::WaitingNode::missing)
      .def_readonly("edges", &engine::WaitingNode::edges);
  py::class_<engine::RunningNode>(m, "RunningNode")
      .def_readonly("name", &engine::RunningNode::name)
      .def_readonly("index", &engine::RunningNode::index)
      .def_readonly("thread", &engine::RunningNode::thread)
      .def_readonly("since_ns", &engine::RunningNode::since_ns);
  py::class_<engine::RunningBackward>(m, "RunningBackward")
      .def_readonly("backward", &engine::RunningBackward::backward)
      .def_readonly("thread", &engine::RunningBackward::thread)
      .def_readonly("nodes", &engine::RunningBackward::nodes)
      .def_readonly("ran", &engine::RunningBackward::ran)
      .def_readonly("progress_ns", &engine::RunningBackward::progress_ns)
      .def_readonly("running", &engine::RunningBackward::running)
      .def_readonly("waiting", &engine::RunningBackward::waiting);
  m.def("engine_start_recording", torch::wrap_pybind_function(start_recording));
  m.def("engine_stop_recording", torch::wrap_pybind_function(stop_recording));
  m.def("engine_cpu_workers", [] { return engine::settings().cpu_workers.load(); });
  m.def("engine_set_cpu_workers", torch::wrap_pybind_function(set_cpu_workers));
  m.def("engine_set_watched", [](bool watched) { engine::settings().watched = watched; });
  m.def("engine_running", torch::wrap_pybind_function(engine::Watch::running));
}

}  // namespace mybackend::bindings
