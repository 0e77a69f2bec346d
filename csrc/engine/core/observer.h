// Observer: is told of every node that ran and of every backward that ended. The engine asks for it once for each
// backward, so that one which is not observed pays nothing.
#pragma once

#include <cstdint>
#include <string>

namespace mybackend::engine::core {

struct NodeRecord {
  std::string name;
  uint64_t sequence;  // upstream's sequence number; UINT64_MAX for an accumulator
  uint64_t backward;  // which call of backward: upstream's graph task id
  uint32_t depth;     // how many backwards enclose that one
  int32_t device;     // -1 is the CPU
  int64_t stream;     // its id, 0 on the CPU and for the default stream
  int64_t thread;     // as the operating system numbers it
  int64_t ready_ns;   // CLOCK_MONOTONIC: its last gradient arrived
  int64_t start_ns;   // a thread turned to it; from ready to here it waited in the queue
  int64_t seat_ns;    // the thread had the device's seat; start to here it waited for another thread
  int64_t end_ns;
  int64_t bytes;       // of the gradients that it made
  int64_t waited_for;  // edges whose gradients it waited for
  int64_t lock_ns;     // what it waited for a thread inside of the same node, and for the GIL
  int64_t sum_ns;      // what adding its gradients to others that had arrived before took
  int64_t sums;        // how many such additions
};

struct BackwardRecord {
  uint64_t backward;  // as in NodeRecord
  uint32_t depth;
  int64_t thread;  // that called backward
  int64_t begin_ns;
  int64_t planned_ns;  // the graph has been visited, the first node can run
  int64_t end_ns;
  int64_t nodes;  // in the plan, whether they ran or not
  int64_t edges;
  bool failed;
};

class Observer {
 public:
  virtual ~Observer() = default;
  // By the thread that ran the node, right after it; must not throw.
  virtual void on_node(NodeRecord&& record) = 0;
  // By the thread that called backward, after its last node; must not throw.
  virtual void on_backward(const BackwardRecord& record) = 0;
};

}  // namespace mybackend::engine::core
