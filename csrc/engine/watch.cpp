#include "csrc/engine/watch.h"

#include <c10/util/StringUtil.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "csrc/engine/run.h"
#include "csrc/engine/trace.h"

namespace mybackend::engine {
namespace {

struct Watched {
  std::mutex mutex;
  std::vector<const Watch*> all;  // in the order in which they began
};

Watched& watched() {
  static Watched* const watched = new Watched;
  return *watched;
}

int64_t native_thread() {
  return syscall(SYS_gettid);
}

}  // namespace

Watch::Watch(Run& run) : run_(settings().watched ? &run : nullptr) {
  if (run_ == nullptr) return;
  thread_ = native_thread();
  progress_ns_ = now_ns();
  const auto& entries = run.plan().entries;
  states_ = std::vector<std::atomic<uint8_t>>(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    states_[i] = entries[i].state & (kNeeded | kCaptured) ? kWaiting : kUnneeded;
  }
  const std::lock_guard<std::mutex> lock(watched().mutex);
  watched().all.push_back(this);
}

Watch::~Watch() {
  if (run_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(watched().mutex);
  std::erase(watched().all, this);
}

void Watch::began(uint32_t index) {
  states_[index] = kRunning;
  const int64_t now = now_ns();
  progress_ns_ = now;
  const std::lock_guard<std::mutex> lock(mutex_);
  running_.push_back({{}, index, native_thread(), now});
}

void Watch::ended(uint32_t index) {
  states_[index] = kRan;
  progress_ns_ = now_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(running_, [&](const RunningNode& node) { return node.index == index; });
}

std::string Watch::label(uint32_t index) const {
  return c10::str(run_->plan().entries[index].node->name(), " [", index, "]");
}

RunningBackward Watch::describe() const {
  const auto& plan = run_->plan();
  RunningBackward one{run_->graph_task_id(), thread_, 0, 0, progress_ns_, {}, {}};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    one.running = running_;
  }
  for (RunningNode& node : one.running) node.name = plan.entries[node.index].node->name();

  // Edges of nodes that have not handed on their gradients, by the node that waits for them.
  std::vector<std::vector<uint32_t>> missing(states_.size());
  for (uint32_t from = 0; from < states_.size(); ++from) {
    if (states_[from] == kUnneeded) continue;
    ++one.nodes;
    if (states_[from] == kRan) {
      ++one.ran;
      continue;
    }
    const auto& entry = plan.entries[from];
    for (uint32_t edge = entry.edges_at; edge != entry.edges_at + entry.edges; ++edge) {
      const uint32_t target = plan.edges[edge].target;
      if (target != Plan::kNone && states_[target] == kWaiting) missing[target].push_back(from);
    }
  }
  for (uint32_t index = 0; index < states_.size() && one.waiting.size() < kMostNamed; ++index) {
    if (states_[index] != kWaiting) continue;
    const auto& entry = plan.entries[index];
    WaitingNode node{entry.node->name(),
                     index,
                     static_cast<int32_t>(Run::lane_of(entry)) - 1,
                     static_cast<uint32_t>(missing[index].size()),
                     {}};
    for (size_t i = 0; i < std::min(missing[index].size(), kMostEdges); ++i) {
      const uint32_t from = missing[index][i];
      node.edges.push_back(label(from) + (states_[from] == kRunning ? " (running)" : " (waiting)"));
    }
    one.waiting.push_back(std::move(node));
  }
  return one;
}

// A run goes on while it is described, so one part may be newer than another; nodes cannot go away, since a run is
// unlisted before it ends.
std::vector<RunningBackward> Watch::running() {
  const std::lock_guard<std::mutex> lock(watched().mutex);
  std::vector<RunningBackward> all;
  for (const Watch* watch : watched().all) all.push_back(watch->describe());
  return all;
}

}  // namespace mybackend::engine
