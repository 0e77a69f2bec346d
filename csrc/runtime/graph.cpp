#include "csrc/runtime/graph.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <utility>

#include "csrc/runtime/allocator.h"
#include "csrc/runtime/errors.h"

#if __has_include(<ATen/core/GraphImplInterface.h>)
#include <ATen/core/GraphImplInterface.h>
#define MB_ACCELERATOR_GRAPH 1
#endif

namespace mybackend::runtime {
namespace {
std::atomic<c10::CaptureId_t> next_pool{1};
}

c10::MempoolId_t new_pool_id() {
  return {0, next_pool.fetch_add(1)};
}

Graph::~Graph() {
  try {
    reset();
  } catch (const std::exception& error) {
    TORCH_WARN_ONCE("mybackend: a graph could not be released: ", error.what());
  }
}

void Graph::capture_begin(c10::MempoolId_t pool) {
  TORCH_CHECK(graph_ == nullptr && exec_ == nullptr && !capturing_,
              "This graph instance already owns a captured graph. To capture a new graph, create a new instance.");
  const DeviceIndex device = current_device();
  const Stream stream = Stream::current(device);
  TORCH_CHECK(device::Stream(stream) != nullptr,
              "mybackend graphs must be captured on a non-default stream. (However, after capture, it's ok to replay "
              "them on the default stream.)");
  pool_ = pool == c10::MempoolId_t{0, 0} ? c10::MempoolId_t{next_pool.fetch_add(1), 0} : pool;
  DeviceCache& cache = allocator().cache(device);
  cache.begin_allocate_to_pool(
      pool_, [own = device::Stream(stream)](device::Stream other) { return other == own || is_capturing(other); });
  holds_pool_ = true;
  device_ = device;
  const device::Status status = device::api().stream_begin_capture(stream);
  if (status != device::Status::Success) cache.end_allocate_to_pool(pool_);
  MB_DEVICE_CHECK(status);
  capturing_ = stream;
}

void Graph::capture_end() {
  TORCH_CHECK(capturing_, "capture_end() without a capture_begin()");
  const Stream stream = *std::exchange(capturing_, std::nullopt);
  TORCH_CHECK(current_stream(device_) == device::Stream(stream), "Capture must end on the same stream it began on.");
  DeviceScope scope(device_);
  const device::Status status = device::api().stream_end_capture(stream, &graph_);
  allocator().cache(device_).end_allocate_to_pool(pool_);
  MB_DEVICE_CHECK(status);
  TORCH_CHECK(graph_ != nullptr, "Invalid capture.");
  if (!keep_graph_) instantiate();
}

void Graph::instantiate() {
  TORCH_CHECK(graph_ != nullptr, "instantiate() called before a capture has ended");
  DeviceScope scope(device_);
  if (exec_ != nullptr) MB_DEVICE_CHECK(device::api().graph_exec_destroy(std::exchange(exec_, nullptr)));
  MB_DEVICE_CHECK(device::api().graph_instantiate(&exec_, graph_));
  if (!keep_graph_) MB_DEVICE_CHECK(device::api().graph_destroy(std::exchange(graph_, nullptr)));
}

void Graph::replay() {
  TORCH_CHECK(graph_ != nullptr || exec_ != nullptr, "Called Graph::replay without a preceding successful capture.");
  if (exec_ == nullptr) instantiate();
  DeviceScope scope(device_);
  MB_DEVICE_CHECK(device::api().graph_launch(exec_, current_stream(device_)));
}

void Graph::reset() {
  if (device_ < 0) return;
  DeviceScope scope(device_);
  if (capturing_) {
    // Abandoned in the middle: the stream must become usable again.
    const Stream stream = *std::exchange(capturing_, std::nullopt);
    static_cast<void>(device::api().stream_end_capture(stream, &graph_));
    allocator().cache(device_).end_allocate_to_pool(pool_);
  }
  if (exec_ != nullptr) MB_DEVICE_CHECK(device::api().graph_exec_destroy(std::exchange(exec_, nullptr)));
  if (graph_ != nullptr) MB_DEVICE_CHECK(device::api().graph_destroy(std::exchange(graph_, nullptr)));
  if (std::exchange(holds_pool_, false)) allocator().cache(device_).release_pool(pool_);
}

c10::MempoolId_t Graph::pool() const {
  TORCH_CHECK(holds_pool_, "Called Graph::pool() without a preceding successful capture.");
  return pool_;
}

#ifdef MB_ACCELERATOR_GRAPH
namespace {

// torch.accelerator.Graph. Every capture mode is served by the driver's one.
struct AcceleratorGraph final : at::GraphImplInterface {
  explicit AcceleratorGraph(const at::GraphImplArgs& arguments) : graph(arguments.keep_graph) {}
  void capture_begin(c10::MempoolId_t pool, at::GraphCaptureMode) override { graph.capture_begin(pool); }
  void capture_end() override { graph.capture_end(); }
  void instantiate() override { graph.instantiate(); }
  void replay() override { graph.replay(); }
  void reset() override { graph.reset(); }
  c10::MempoolId_t pool() const override { return graph.pool(); }
  void enable_debug_mode() override { TORCH_CHECK_NOT_IMPLEMENTED(false, "mybackend graphs have no debug mode"); }
  void debug_dump(const std::string&) override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "mybackend graphs cannot be dumped");
  }

  Graph graph;
};

}  // namespace
#endif

}  // namespace mybackend::runtime

#ifdef MB_ACCELERATOR_GRAPH
namespace at {
// The registry's key is the device's name, in capitals.
REGISTER_GRAPH_IMPL(MYBACKEND, mybackend::runtime::AcceleratorGraph)
}  // namespace at
#endif
