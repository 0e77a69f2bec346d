#include "csrc/device/host_parallel.h"

#include <atomic>

namespace mybackend::device {
namespace {

std::atomic<ParallelFor> installed{nullptr};

}  // namespace

void set_parallel_for(ParallelFor hook) {
  installed.store(hook, std::memory_order_release);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelBody fn, void* ctx) {
  if (end - begin > grain) {
    if (ParallelFor hook = installed.load(std::memory_order_acquire)) return hook(begin, end, grain, fn, ctx);
  }
  fn(ctx, begin, end);
}

}  // namespace mybackend::device
