// out[i] = in[i] / sum of in, one block.
#include "test/cpp/device/sample_kernel.h"

#include "csrc/device/portable.h"

namespace test {
namespace {

using namespace mybackend::device;

struct Sample {
  SampleArgs args;
  MB_DEVICE void operator()(Block block) const {
    const float* in = args.in;
    float* out = args.out;
    MB_SHARED(block, float, total, 1);
    const float sum = block.sum<float>(args.n, [=](int64_t i) { return in[i]; });
    if (block.thread == 0) total[0] = sum;
    block.sync();
    const float* shared = total;
    block.each(args.n, [=](int64_t i) { out[i] = in[i] / shared[0]; });
  }
};

}  // namespace

MB_DEFINE_KERNEL(sample, (Stream stream, const SampleArgs& args)) {
  launch(stream, {1, 128, args.n}, Sample{args});
}

}  // namespace test
