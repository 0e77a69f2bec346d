// Watch: the backwards that run now, for who wants to know what a slow or stuck one waits for (the watchdog).
// Costs nothing unless Settings::watched is on when a backward begins.
//
// Threads: began() and ended() are called by the threads that run the nodes, running() by any other. Node states and
// the
//   time of the last progress are atomics; the list of nodes that run is guarded by a mutex, which is taken after that
//   of the list of watches. The plan's structure does not change while a run works.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace mybackend::engine {

class Run;

struct RunningNode {
  std::string name;
  uint32_t index;  // in the plan
  int64_t thread;
  int64_t since_ns;
};

struct WaitingNode {
  std::string name;
  uint32_t index;
  int32_t device;                  // -1 is the CPU
  uint32_t missing;                // edges whose gradient has not arrived
  std::vector<std::string> edges;  // the nodes at the other end of the first of them, and their states
};

struct RunningBackward {
  uint64_t backward;  // graph task id
  int64_t thread;     // of the owner
  uint64_t nodes;     // that are needed
  uint64_t ran;
  int64_t progress_ns;  // when a node began or ended last
  std::vector<RunningNode> running;
  std::vector<WaitingNode> waiting;  // the first kMostNamed of those that have not run and do not run
};

class Watch {
 public:
  static constexpr size_t kMostNamed = 20;
  static constexpr size_t kMostEdges = 4;

  explicit Watch(Run& run);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool watching() const { return run_ != nullptr; }
  void began(uint32_t index);
  void ended(uint32_t index);

  static std::vector<RunningBackward> running();

 private:
  enum State : uint8_t { kUnneeded, kWaiting, kRunning, kRan };

  RunningBackward describe() const;
  std::string label(uint32_t index) const;

  Run* const run_;  // null if it is not watched
  int64_t thread_ = 0;
  std::vector<std::atomic<uint8_t>> states_;
  std::atomic<int64_t> progress_ns_{0};
  mutable std::mutex mutex_;
  std::vector<RunningNode> running_;  // guarded by mutex_; without names
};

}  // namespace mybackend::engine
