// Gives the host driver at::parallel_for, so that its launches share torch's threads and obey torch.set_num_threads.
#include <ATen/Parallel.h>

#include "csrc/device/host_parallel.h"

namespace mybackend::runtime {
namespace {

void parallel_for(int64_t begin, int64_t end, int64_t grain, void (*fn)(void*, int64_t, int64_t), void* ctx) {
  at::parallel_for(begin, end, grain, [&](int64_t first, int64_t last) { fn(ctx, first, last); });
}

const bool kInstalled = [] {
  device::set_parallel_for(parallel_for);
  return true;
}();

}  // namespace
}  // namespace mybackend::runtime
