#include "csrc/engine/watch.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "csrc/engine/run.h"

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

}  // namespace

Watch::Watch(Run& run) : run_(settings().watched ? &run : nullptr) {
  if (run_ == nullptr) return;
  thread_ = syscall(SYS_gettid);
  backward_ = run.graph_task_id();
  for (const auto& entry : run.plan().entries) waited_for_.push_back(entry.waiting);
  const std::lock_guard<std::mutex> lock(watched().mutex);
  watched().all.push_back(this);
}

Watch::~Watch() {
  if (run_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(watched().mutex);
  std::erase(watched().all, this);
}

// The run goes on meanwhile: a count may be older than the next one, which is good enough for a report, and the nodes
// cannot go away, since a run is unlisted before it ends.
std::vector<RunningBackward> Watch::running() {
  const std::lock_guard<std::mutex> lock(watched().mutex);
  std::vector<RunningBackward> all;
  for (const Watch* watch : watched().all) {
    auto& entries = const_cast<Plan&>(watch->run_->plan()).entries;
    RunningBackward one{watch->backward_, watch->thread_, entries.size(), {}};
    for (size_t i = 0; i < entries.size(); ++i) {
      const uint32_t missing = std::atomic_ref<uint32_t>(entries[i].waiting).load(std::memory_order_relaxed);
      if (missing == 0 || missing == watch->waited_for_[i]) continue;
      one.waiting.push_back({entries[i].node->name(), entries[i].sequence,
                             static_cast<int32_t>(Run::lane_of(entries[i])) - 1, missing, watch->waited_for_[i]});
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace mybackend::engine
