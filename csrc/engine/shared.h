// SharedRun: a run that several threads serve, as the scheduler sees it (core/scheduler.h).
#pragma once

#include <mutex>
#include <vector>

#include "csrc/engine/core/scheduler.h"
#include "csrc/engine/run.h"

namespace mybackend::engine {

class SharedRun final : public core::Scheduler::Job {
 public:
  explicit SharedRun(Run& run) : run_(run) {}

  void run(const core::Ready& node) override;
  void help(const std::function<void()>& serve) override;
  void fail() override;

  // Guards what nodes of one run share: gradients that have arrived, counts, captures, leaf streams.
  std::mutex mutex;

  // With several CPU workers gradients arrive in any order. They are kept apart until the node runs and then added in
  // the order in which one thread would have, so that results are the same to the last bit.
  void keep_order(std::vector<uint32_t> ranks, size_t places);
  bool keeps_order() const { return !first_.empty(); }
  void arrive(uint32_t place, uint32_t producer, Tensor&& gradient);  // the mutex is held
  Tensor take_sum(uint32_t place);

 private:
  struct Arrival {
    uint64_t order;
    uint32_t next;
    Tensor gradient;
  };
  Run& run_;
  std::vector<uint32_t> ranks_;    // of the nodes in one thread's order
  std::vector<uint32_t> first_;    // by place: newest of its arrivals
  std::vector<Arrival> arrivals_;  // in order of arrival
};

core::Scheduler& scheduler();

}  // namespace mybackend::engine
