// Graph: work captured from a stream once and replayed many times, with the memory it was captured with.
//
// Capture runs on a stream of the pool (never the default stream). Allocations made meanwhile for capturing streams
// come from a private pool that lives as long as the graph, so that a replay finds its buffers at the same addresses.
// Not thread-safe: one thread captures or replays a graph at a time.
#pragma once

#include <c10/core/Allocator.h>

#include <optional>

#include "csrc/device/api.h"
#include "csrc/runtime/stream.h"

namespace mybackend::runtime {

// A pool that several graphs may share, as long as they are replayed in the order they were captured in.
c10::MempoolId_t new_pool_id();

class Graph {
 public:
  explicit Graph(bool keep_graph = false) : keep_graph_(keep_graph) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // On the current stream; {0, 0} makes a pool of the graph's own.
  void capture_begin(c10::MempoolId_t pool = {0, 0});
  void capture_end();
  // Done by capture_end unless the graph is kept.
  void instantiate();
  // On the current stream.
  void replay();
  void reset();
  c10::MempoolId_t pool() const;

 private:
  const bool keep_graph_;
  bool holds_pool_ = false;
  c10::MempoolId_t pool_{0, 0};
  std::optional<Stream> capturing_;
  DeviceIndex device_ = -1;
  device::Graph graph_ = nullptr;
  device::GraphExec exec_ = nullptr;
};

}  // namespace mybackend::runtime
