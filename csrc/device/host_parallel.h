// How the host driver spreads one launch over CPU threads.
//
// The driver owns no thread pool: the layer above installs one (the runtime installs at::parallel_for, so that
// torch.set_num_threads is respected). Without a hook everything is serial.
#pragma once

#include <cstdint>

namespace mybackend::device {

using ParallelBody = void (*)(void* ctx, int64_t begin, int64_t end);
using ParallelFor = void (*)(int64_t begin, int64_t end, int64_t grain, ParallelBody fn, void* ctx);

// The hook calls fn(ctx, b, e) for pieces that cover [begin, end), each of about `grain` or more, and returns when all
// are done. It may be called from any thread, also from the driver's own workers. nullptr restores the serial default.
void set_parallel_for(ParallelFor hook);

// A range of no more than `grain` never reaches the hook.
void parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelBody fn, void* ctx);

}  // namespace mybackend::device
