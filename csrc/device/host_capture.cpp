#include "csrc/device/host_capture.h"

#include <algorithm>
#include <mutex>

#include "csrc/device/host_device.h"

namespace mybackend::device {

using Nodes = std::vector<std::unique_ptr<host::Work>>;

struct GraphHandle {
  std::shared_ptr<const Nodes> nodes;
};
struct GraphExecHandle {
  std::shared_ptr<const Nodes> nodes;
};

namespace host {
namespace {

std::mutex captures;

void raise_to(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

void run_nodes(const Nodes& nodes) {
  for (const auto& node : nodes) node->run();
}

}  // namespace

void Capture::admit(const std::shared_ptr<Capture>& self, StreamHandle& stream, const Clock& after) {
  stream.capture = self;
  stream.capture_index = members_.size();
  members_.push_back(Member{&stream, 0, after});
  stream.set_capturing(true);
}

void Capture::merge(StreamHandle& stream, const Clock& after) {
  raise_to(members_[stream.capture_index].clock, after);
}

void Capture::leave(StreamHandle& stream) {
  members_[stream.capture_index].stream = nullptr;
  if (is_origin(stream)) origin_ = nullptr;
}

void Capture::append(StreamHandle& stream, std::unique_ptr<Work> work) {
  Member& member = members_[stream.capture_index];
  nodes_.push_back(std::move(work));
  member.nodes++;
  if (member.clock.size() <= stream.capture_index) member.clock.resize(stream.capture_index + 1);
  member.clock[stream.capture_index] = member.nodes;
}

bool Capture::joined() const {
  const Clock& reached = clock_of(*origin_);
  for (size_t i = 0; i < members_.size(); i++)
    if ((i < reached.size() ? reached[i] : 0) < members_[i].nodes) return false;
  return true;
}

std::vector<std::unique_ptr<Work>> Capture::close() {
  open_ = false;
  for (Member& member : members_) {
    if (member.stream == nullptr) continue;
    member.stream->set_capturing(false);
    member.stream->capture.reset();
  }
  members_.clear();
  return std::move(nodes_);
}

std::optional<Status> record_if_capturing(StreamHandle& stream, std::unique_ptr<Work>& work) {
  std::lock_guard lock(captures);
  if (stream.capture == nullptr) return std::nullopt;
  if (!stream.capture->valid()) return Status::StreamCaptureInvalidated;
  stream.capture->append(stream, std::move(work));
  return Status::Success;
}

std::optional<Capture::Point> point_in_capture(StreamHandle& stream) {
  std::lock_guard lock(captures);
  if (stream.capture == nullptr) return std::nullopt;
  return Capture::Point{stream.capture, stream.capture->clock_of(stream)};
}

Status wait_in_capture(StreamHandle& stream, const Capture::Point& after) {
  std::lock_guard lock(captures);
  Capture& capture = *after.capture;
  if (!capture.open()) return Status::CapturedEvent;
  if (!capture.valid()) return Status::StreamCaptureInvalidated;
  if (stream.is_default) return Status::StreamCaptureUnsupported;
  if (stream.capture == nullptr) {
    capture.admit(after.capture, stream, after.clock);
  } else if (stream.capture == after.capture) {
    capture.merge(stream, after.clock);
  } else {
    stream.capture->invalidate();
    capture.invalidate();
    return Status::StreamCaptureMerge;
  }
  return Status::Success;
}

Status invalidate_capture(StreamHandle& stream) {
  std::lock_guard lock(captures);
  if (stream.capture != nullptr) stream.capture->invalidate();
  return Status::StreamCaptureUnsupported;
}

// A capture that lost its origin can never end: the other streams are let go.
void leave_capture(StreamHandle& stream) {
  std::lock_guard lock(captures);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return;
  capture->invalidate();
  if (capture->is_origin(stream)) {
    capture->close();
    return;
  }
  capture->leave(stream);
  stream.set_capturing(false);
  stream.capture.reset();
}

void lock_captures_for_fork() {
  captures.lock();
}
void unlock_captures_after_fork() {
  captures.unlock();
}
void reset_captures_in_child() {
  new (&captures) std::mutex;
}

Status stream_begin_capture(Stream handle) {
  StreamHandle& stream = resolve(handle);
  if (stream.is_default) return fail(Status::StreamCaptureUnsupported);
  std::lock_guard lock(captures);
  if (stream.capture != nullptr) return fail(Status::IllegalState);
  auto capture = std::make_shared<Capture>(stream);
  capture->admit(capture, stream, Clock{});
  return Status::Success;
}

Status stream_end_capture(Stream handle, Graph* graph) {
  *graph = nullptr;
  StreamHandle& stream = resolve(handle);
  std::lock_guard lock(captures);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return fail(Status::IllegalState);
  if (!capture->is_origin(stream)) {
    capture->invalidate();
    return fail(Status::StreamCaptureUnmatched);
  }
  const bool valid = capture->valid(), joined = capture->joined();
  auto nodes = std::make_shared<Nodes>(capture->close());
  if (!valid) return fail(Status::StreamCaptureInvalidated);
  if (!joined) return fail(Status::StreamCaptureUnjoined);
  *graph = new GraphHandle{std::move(nodes)};
  return Status::Success;
}

Status stream_is_capturing(Stream stream, bool* capturing) {
  *capturing = resolve(stream).capturing();
  return Status::Success;
}

Status graph_instantiate(GraphExec* exec, Graph graph) {
  if (graph == nullptr) return fail(Status::InvalidValue);
  *exec = new GraphExecHandle{graph->nodes};
  return Status::Success;
}

// Launched into a capturing stream a graph becomes one node of it.
Status graph_launch(GraphExec exec, Stream handle) {
  if (exec == nullptr) return fail(Status::InvalidValue);
  StreamHandle& stream = resolve(handle);
  if (Inline own{stream}) {
    run_nodes(*exec->nodes);
    return Status::Success;
  }
  return send(stream, make_work([nodes = exec->nodes] { run_nodes(*nodes); }));
}

Status graph_exec_destroy(GraphExec exec) {
  if (exec == nullptr) return fail(Status::InvalidValue);
  delete exec;
  return Status::Success;
}

Status graph_destroy(Graph graph) {
  if (graph == nullptr) return fail(Status::InvalidValue);
  delete graph;
  return Status::Success;
}

}  // namespace host
}  // namespace mybackend::device
