// Capture and graphs of the host driver: recording, replay, forked streams, refused uses.
#include "test/cpp/device/support.h"

using namespace test;

namespace {

struct OwnGraph {
  ~OwnGraph() {
    if (exec != nullptr) CHECK_OK(driver().graph_exec_destroy(exec));
  }
  // Ends the capture and keeps what can be launched.
  void end(Stream stream) {
    Graph graph = nullptr;
    CHECK_OK(driver().stream_end_capture(stream, &graph));
    CHECK_OK(driver().graph_instantiate(&exec, graph));
    CHECK_OK(driver().graph_destroy(graph));
  }
  GraphExec exec = nullptr;
};

TEST_CASE("captured work runs at each launch of the graph and not before") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0, stream);
  OwnGraph graph;
  bool capturing = false;
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_OK(driver().stream_is_capturing(stream, &capturing));
  CHECK(capturing);
  send_step(stream, data, 1);
  send_step(stream, data, 2);
  CHECK_EQ(*data.data, 0);
  graph.end(stream);
  CHECK_OK(driver().stream_is_capturing(stream, &capturing));
  CHECK(!capturing);
  CHECK_EQ(read<int64_t>(data, stream), 0);
  for (int i = 0; i < 3; i++) CHECK_OK(driver().graph_launch(graph.exec, stream));
  CHECK_EQ(read<int64_t>(data, stream), ((5 * 3 + 1) * 3 + 2) * 9 + 5);
}

TEST_CASE("a graph may be destroyed while a launch of it is pending") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0);
  Gate gate;
  {
    OwnGraph graph;
    CHECK_OK(driver().stream_begin_capture(stream));
    send_step(stream, data, 4);
    graph.end(stream);
    gate.hold(stream);
    CHECK_OK(driver().graph_launch(graph.exec, stream));
  }
  gate.open();
  CHECK_EQ(read<int64_t>(data, stream), 4);
}

TEST_CASE("copies, fills and host functions are captured too") {
  OwnStream stream;
  OwnMemory<int64_t> data(2);
  int calls = 0;
  int64_t seen = -1;
  OwnGraph graph;
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_OK(driver().memset_async(data, 0, 16, stream));
  send_step(stream, data, 6);
  CHECK_OK(driver().memcpy_async(data + 1, data, 8, CopyKind::DeviceToDevice, stream));
  CHECK_OK(driver().memcpy_async(&seen, data + 1, 8, CopyKind::DeviceToHost, stream));
  CHECK_OK(driver().launch_host_function(stream, [](void* count) { ++*static_cast<int*>(count); }, &calls));
  graph.end(stream);
  CHECK_EQ(calls, 0);
  CHECK_OK(driver().graph_launch(graph.exec, stream));
  CHECK_OK(driver().stream_synchronize(stream));
  CHECK_EQ(seen, 6);
  CHECK_EQ(calls, 1);
}

TEST_CASE("a stream that waits for a captured event joins the capture") {
  OwnStream origin, side;
  OwnEvent fork, join;
  OwnMemory<int64_t> from(1), to(1);
  write<int64_t>(from, 0);
  write<int64_t>(to, 0);
  OwnGraph graph;
  bool capturing = false;
  CHECK_OK(driver().stream_begin_capture(origin));
  launch(origin, {1, 32, 1}, Assign{from, 8});
  CHECK_OK(driver().event_record(fork, origin));
  CHECK_OK(driver().stream_wait_event(side, fork));
  CHECK_OK(driver().stream_is_capturing(side, &capturing));
  CHECK(capturing);
  launch(side, {1, 32, 1}, Forward{from, to});
  CHECK_OK(driver().event_record(join, side));
  CHECK_OK(driver().stream_wait_event(origin, join));
  graph.end(origin);
  CHECK_OK(driver().stream_is_capturing(side, &capturing));
  CHECK(!capturing);
  CHECK_OK(driver().graph_launch(graph.exec, origin));
  CHECK_EQ(read<int64_t>(to, origin), 8);
}

TEST_CASE("a capture with a stream that was not joined fails and lets all streams go") {
  OwnStream origin, side;
  OwnEvent fork;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 0);
  CHECK_OK(driver().stream_begin_capture(origin));
  CHECK_OK(driver().event_record(fork, origin));
  CHECK_OK(driver().stream_wait_event(side, fork));
  send_step(side, data, 1);
  Graph graph = nullptr;
  CHECK_EQ(driver().stream_end_capture(origin, &graph), Status::StreamCaptureUnjoined);
  CHECK(graph == nullptr);
  CHECK_OK(driver().stream_synchronize(side));
  CHECK_OK(driver().stream_synchronize(origin));
}

TEST_CASE("waiting for a capturing stream is refused and invalidates the capture") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_EQ(driver().stream_synchronize(stream), Status::StreamCaptureUnsupported);
  CHECK_EQ(driver().memset_async(data, 0, 8, stream), Status::StreamCaptureInvalidated);
  Graph graph = nullptr;
  CHECK_EQ(driver().stream_end_capture(stream, &graph), Status::StreamCaptureInvalidated);
  CHECK_OK(driver().stream_synchronize(stream));
}

TEST_CASE("a capturing stream that waits for uncaptured work breaks isolation") {
  OwnStream stream, outside;
  OwnEvent event;
  CHECK_OK(driver().event_record(event, outside));
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_EQ(driver().stream_wait_event(stream, event), Status::StreamCaptureIsolation);
  Graph graph = nullptr;
  CHECK_EQ(driver().stream_end_capture(stream, &graph), Status::StreamCaptureInvalidated);
}

TEST_CASE("two captures cannot be merged") {
  OwnStream one, two;
  OwnEvent event;
  CHECK_OK(driver().stream_begin_capture(one));
  CHECK_OK(driver().stream_begin_capture(two));
  CHECK_OK(driver().event_record(event, one));
  CHECK_EQ(driver().stream_wait_event(two, event), Status::StreamCaptureMerge);
  Graph graph = nullptr;
  CHECK_EQ(driver().stream_end_capture(one, &graph), Status::StreamCaptureInvalidated);
  CHECK_EQ(driver().stream_end_capture(two, &graph), Status::StreamCaptureInvalidated);
}

TEST_CASE("an event of a capture cannot be queried, waited for or timed") {
  OwnStream stream;
  OwnEvent event;
  OwnGraph graph;
  float milliseconds = 0;
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_OK(driver().event_record(event, stream));
  CHECK_EQ(driver().event_query(event), Status::CapturedEvent);
  CHECK_EQ(driver().event_synchronize(event), Status::CapturedEvent);
  CHECK_EQ(driver().event_elapsed_time(&milliseconds, event, event), Status::CapturedEvent);
  graph.end(stream);
}

TEST_CASE("capture is refused on the default stream, twice on one stream and ended where it did not begin") {
  OwnStream stream, side;
  OwnEvent fork;
  Graph graph = nullptr;
  CHECK_EQ(driver().stream_begin_capture(nullptr), Status::StreamCaptureUnsupported);
  CHECK_EQ(driver().stream_end_capture(stream, &graph), Status::IllegalState);
  CHECK_OK(driver().stream_begin_capture(stream));
  CHECK_EQ(driver().stream_begin_capture(stream), Status::IllegalState);
  CHECK_OK(driver().event_record(fork, stream));
  CHECK_OK(driver().stream_wait_event(side, fork));
  CHECK_EQ(driver().stream_end_capture(side, &graph), Status::StreamCaptureUnmatched);
  CHECK_EQ(driver().stream_end_capture(stream, &graph), Status::StreamCaptureInvalidated);
}

TEST_CASE("destroying the stream a capture began in lets the others go") {
  OwnStream side;
  {
    OwnStream origin;
    OwnEvent fork;
    CHECK_OK(driver().stream_begin_capture(origin));
    CHECK_OK(driver().event_record(fork, origin));
    CHECK_OK(driver().stream_wait_event(side, fork));
  }
  CHECK_OK(driver().stream_synchronize(side));
}

TEST_CASE("memory may be taken and freed while a stream captures") {
  OwnStream stream;
  OwnGraph graph;
  CHECK_OK(driver().stream_begin_capture(stream));
  { OwnMemory<char> memory(100); }
  graph.end(stream);
}

}  // namespace
