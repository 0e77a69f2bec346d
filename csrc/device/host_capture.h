// Stream capture and graphs of the host driver.
//
// A capture is one list of work in the order in which it was recorded. Events order streams only backwards in that
// list, so running it from front to back on one stream is an execution CUDA could have chosen too. Each stream that
// takes part carries a clock: how many nodes of every taking-part stream precede its next one; it tells whether all
// forked streams have been joined at the end.
//
// Ownership: streams and events share the capture; the list moves into the graph, which its executables share, so
// either may be destroyed while a launch is pending. One lock guards all captures.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "csrc/device/api.h"
#include "csrc/device/host_stream.h"

namespace mybackend::device::host {

using Clock = std::vector<size_t>;

class Capture {
 public:
  // What an event recorded in a capture stands for.
  struct Point {
    std::shared_ptr<Capture> capture;
    Clock clock;
  };

  explicit Capture(StreamHandle& origin) : origin_(&origin) {}

  bool open() const { return open_; }
  bool valid() const { return valid_; }
  void invalidate() { valid_ = false; }

  bool is_origin(const StreamHandle& stream) const { return &stream == origin_; }
  void admit(const std::shared_ptr<Capture>& self, StreamHandle& stream, const Clock& after);
  void merge(StreamHandle& stream, const Clock& after);
  void leave(StreamHandle& stream);
  void append(StreamHandle& stream, std::unique_ptr<Work> work);
  const Clock& clock_of(const StreamHandle& stream) const { return members_[stream.capture_index].clock; }
  bool joined() const;
  // Releases the streams; no work can be recorded afterwards.
  std::vector<std::unique_ptr<Work>> close();

 private:
  struct Member {
    StreamHandle* stream;  // nullptr once it was destroyed
    size_t nodes = 0;
    Clock clock;
  };

  StreamHandle* origin_;
  std::vector<Member> members_;
  std::vector<std::unique_ptr<Work>> nodes_;
  bool open_ = true;
  bool valid_ = true;
};

// Records the work if the stream (still) captures; nullopt leaves `work` alone: the stream is not capturing.
std::optional<Status> record_if_capturing(StreamHandle& stream, std::unique_ptr<Work>& work);
// Recording an event: the point it stands for, or nullopt when the stream is not capturing.
std::optional<Capture::Point> point_in_capture(StreamHandle& stream);
// A stream waits for an event that stands for `after`: it joins that capture, or is ordered within it.
Status wait_in_capture(StreamHandle& stream, const Capture::Point& after);
// Returns StreamCaptureUnsupported, the error of what invalidated it.
Status invalidate_capture(StreamHandle& stream);
// A stream that takes part is being destroyed.
void leave_capture(StreamHandle& stream);

void lock_captures_for_fork();
void unlock_captures_after_fork();
void reset_captures_in_child();

Status stream_begin_capture(Stream stream);
Status stream_end_capture(Stream stream, Graph* graph);
Status stream_is_capturing(Stream stream, bool* capturing);
Status graph_instantiate(GraphExec* exec, Graph graph);
Status graph_launch(GraphExec exec, Stream stream);
Status graph_exec_destroy(GraphExec exec);
Status graph_destroy(Graph graph);

}  // namespace mybackend::device::host
