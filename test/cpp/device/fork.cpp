// Forked children and process exit: nothing hangs, the child starts its own workers.
#include <sys/wait.h>
#include <unistd.h>

#include "csrc/device/host_config.h"
#include "test/cpp/device/support.h"

using namespace test;

namespace {

// Exit status of `body` in a forked child; -1 when it was killed, e.g. by the alarm that ends a hang.
template <class F>
int in_child(F body, bool through_exit = false) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const int result = body();
    if (through_exit) std::exit(result);
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int use_everything(Stream stream) {
  int64_t* data = nullptr;
  Event event = nullptr;
  bool good = driver().malloc(reinterpret_cast<void**>(&data), 8) == Status::Success &&
              driver().event_create(&event, kEventDefault) == Status::Success;
  launch(stream, {1, 32, 1}, Assign{data, 0});
  Gate gate;
  gate.hold(stream);
  send_step(stream, data, 5);
  good = good && driver().event_record(event, stream) == Status::Success;
  gate.open();
  good = good && driver().event_synchronize(event) == Status::Success && *data == 5 &&
         driver().device_synchronize() == Status::Success && driver().event_destroy(event) == Status::Success &&
         driver().free(data) == Status::Success;
  return good ? 0 : 1;
}

TEST_CASE("a forked child can use the driver, its parent's streams and memory") {
  OwnStream stream;
  OwnMemory<int64_t> data(1);
  write<int64_t>(data, 21, stream);
  CHECK_EQ(use_everything(stream), 0);  // the stream has a worker now
  CHECK_EQ(in_child([&] { return use_everything(stream) + (read<int64_t>(data, stream) == 21 ? 0 : 2); }), 0);
  CHECK_EQ(use_everything(stream), 0);
}

TEST_CASE("a child forked while a stream is busy starts with idle streams and completed events") {
  OwnStream stream;
  OwnEvent event;
  Gate gate;
  gate.hold(stream);
  CHECK_OK(driver().event_record(event, stream));
  CHECK_EQ(in_child([&] {
             const bool idle = driver().stream_query(stream) == Status::Success &&
                               driver().event_synchronize(event) == Status::Success;
             return idle ? use_everything(stream) : 1;
           }),
           0);
  CHECK_EQ(driver().stream_query(stream), Status::NotReady);
  gate.open();
}

// Not under AddressSanitizer: the child waits for ever for a lock of its allocator that another thread held at the
// fork. Glibc's allocator takes its locks before a fork; ASan's does since LLVM 18 (llvm/llvm-project#75290).
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("children forked while other threads launch can use the driver") {
  OwnStream stream;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++)
    threads.emplace_back([&] {
      OwnMemory<int64_t> data(1);
      OwnEvent event;
      while (!stop) {
        for (int i = 0; i < 64; i++) {
          launch(stream, {1, 32, 1}, Assign{data, 1});
          CHECK_OK(driver().event_record(event, stream));
        }
        CHECK_OK(driver().stream_synchronize(stream));
      }
    });
  for (int i = 0; i < 10; i++) CHECK_EQ(in_child([&] { return use_everything(stream); }), 0);
  stop = true;
  for (auto& thread : threads) thread.join();
}
#endif

TEST_CASE("a process may exit with pending work") {
  CHECK_EQ(in_child(
               [] {
                 static Stream first, second;
                 static Event event;
                 driver().stream_create(&first, 0);
                 driver().stream_create(&second, 0);
                 driver().event_create(&event, kEventDefault);
                 for (int i = 0; i < 50; i++)
                   std::thread([] {
                     driver().launch_host_function(
                         first, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); }, nullptr);
                   }).detach();
                 std::this_thread::sleep_for(std::chrono::milliseconds(50));
                 driver().event_record(event, first);
                 driver().stream_wait_event(second, event);
                 return 0;
               },
               true),
           0);
}

}  // namespace
