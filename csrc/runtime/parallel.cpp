// Gives the host driver at::parallel_for, so that its launches share torch's threads and obey torch.set_num_threads.
//
// A forked child has only the thread that forked; OpenMP would wait for the others for ever. There launches run on the
// calling thread.
#include <ATen/Parallel.h>
#include <pthread.h>

#include <atomic>

#include "csrc/device/host_parallel.h"

namespace mybackend::runtime {
namespace {

std::atomic<bool> forked{false};

void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) {
  if (forked.load(std::memory_order_relaxed)) return fn(ctx, begin, end);
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) { fn(ctx, first, last); });
}

const bool kInstalled = [] {
  pthread_atfork(nullptr, nullptr, [] { forked.store(true, std::memory_order_relaxed); });
  device::set_parallel_for(parallel_for);
  return true;
}();

}  // namespace
}  // namespace mybackend::runtime
