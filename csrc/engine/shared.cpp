#include "csrc/engine/shared.h"

#include <algorithm>

#include "csrc/engine/accumulate.h"
#include "csrc/engine/context.h"
#include "csrc/engine/python.h"

namespace mybackend::engine {

void SharedRun::run(const core::Ready& node) {
  run_.evaluate_traced(node.index);
}

void SharedRun::help(const std::function<void()>& serve) {
  enter_as_helper(run_.graph_task_, run_.driver, [&] {
    ThreadState& thread = this_thread();
    thread.run = &run_;
    thread.depth = run_.depth_ + 1;
    thread.nesting = 1;
    thread.interrupt = run_.shared_interrupt_;
    void* const context = python().enter_context();
    run_.restore_profiler();
    serve();
    python().leave_context(context);
    thread.run = nullptr;
    thread.node = nullptr;
    thread.depth = 0;
    thread.nesting = 0;
    thread.interrupt = nullptr;
  });
}

void SharedRun::fail() {
  run_.report(this_thread().node);
}

void SharedRun::keep_order(std::vector<uint32_t> ranks, size_t places) {
  ranks_ = std::move(ranks);
  first_.assign(places, Plan::kNone);
}

void SharedRun::arrive(uint32_t place, uint32_t producer, Tensor&& gradient) {
  if (!gradient.defined()) return;
  const uint64_t rank = producer == Plan::kNone ? 0 : uint64_t{ranks_[producer]} + 1;
  // Edges of one producer arrive in their order, so its number of arrival breaks the tie.
  arrivals_.push_back({rank << 32 | arrivals_.size(), first_[place], std::move(gradient)});
  first_[place] = static_cast<uint32_t>(arrivals_.size() - 1);
}

Tensor SharedRun::take_sum(uint32_t place) {
  std::vector<std::pair<uint64_t, Tensor>> parts;
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (uint32_t at = first_[place]; at != Plan::kNone; at = arrivals_[at].next) {
      parts.emplace_back(arrivals_[at].order, std::move(arrivals_[at].gradient));
    }
  }
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Tensor sum;
  for (auto& [order, gradient] : parts) accumulate(sum, std::move(gradient));
  return sum;
}

}  // namespace mybackend::engine
