// Watch: the backwards that run now, for who wants to know what a slow or stuck one waits for (the watchdog).
// Costs nothing unless Settings::watched is on when a backward begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mybackend::engine {

class Run;

struct WaitingNode {
  std::string name;
  uint64_t sequence;
  int32_t device;       // -1 is the CPU
  uint32_t missing;     // edges whose gradient has not arrived
  uint32_t waited_for;  // all of its edges
};

struct RunningBackward {
  uint64_t backward;                 // graph task id
  int64_t thread;                    // of the owner
  uint64_t nodes;                    // in the plan
  std::vector<WaitingNode> waiting;  // nodes of which some gradients have arrived, others have not
};

class Watch {
 public:
  explicit Watch(Run& run);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  static std::vector<RunningBackward> running();

 private:
  Run* run_;  // null if it is not watched
  std::vector<uint32_t> waited_for_;
  uint64_t backward_ = 0;
  int64_t thread_ = 0;
};

}  // namespace mybackend::engine
