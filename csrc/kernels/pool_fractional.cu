// Fractional max pooling: along a dimension window o of n begins at int((o + u) * a) - int(u * a), where u in [0, 1) is
// the plane's sample and a = (in - pool) / (n - 1); the last one ends with the input. The first of equals, and NaN
// wins. Called by csrc/aten/pool_fractional.cpp. Spec: test/ops/test_pool.py.
#include "csrc/kernels/pool_fractional.h"

#include <limits>

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int64_t kPerBlock = 256;
constexpr int kThreads = 128;

template <class T>
struct FractionalMaxPool {
  using A = Compute<T>;
  FractionalPoolArgs a;

  MB_DEVICE int64_t begin(int64_t plane, int d, int64_t o) const {
    if (a.sample[d] < 0) return 0;
    if (o == a.out[d] - 1) return a.in[d] - a.pool[d];
    const A u = convert<A>(static_cast<const T*>(a.samples)[plane * a.dims + a.sample[d]]);
    const A step = A(a.in[d] - a.pool[d]) / A(a.out[d] - 1);
    return int64_t((A(o) + u) * step) - int64_t(u * step);
  }

  MB_DEVICE void operator()(Block block) const {
    const int64_t total = a.planes * a.out[0] * a.out[1] * a.out[2];
    const int64_t first = block.index * kPerBlock, left = total - first;
    block.each(left < kPerBlock ? left : kPerBlock, [&](int64_t i) {
      int64_t rest = first + i;
      const int64_t ow = rest % a.out[2];
      rest /= a.out[2];
      const int64_t oh = rest % a.out[1];
      rest /= a.out[1];
      const int64_t od = rest % a.out[0];
      const int64_t plane = rest / a.out[0];
      const int64_t d0 = begin(plane, 0, od), h0 = begin(plane, 1, oh), w0 = begin(plane, 2, ow);
      const T* x = static_cast<const T*>(a.input) + plane * a.in[0] * a.in[1] * a.in[2];
      A best = -std::numeric_limits<A>::infinity();
      int64_t where = (d0 * a.in[1] + h0) * a.in[2] + w0;
      for (int64_t d = d0; d < d0 + a.pool[0]; d++)
        for (int64_t h = h0; h < h0 + a.pool[1]; h++)
          for (int64_t w = w0; w < w0 + a.pool[2]; w++) {
            const int64_t at = (d * a.in[1] + h) * a.in[2] + w;
            const A value = convert<A>(x[at]);
            const bool better = (value > best) | (value != value);
            best = better ? value : best;
            where = better ? at : where;
          }
      static_cast<T*>(a.output)[first + i] = convert<T>(best);
      a.indices[first + i] = where;
    });
  }
};

}  // namespace

MB_DEFINE_KERNEL(fractional_max_pool, (Stream stream, const FractionalPoolArgs& args)) {
  const int64_t total = args.planes * args.out[0] * args.out[1] * args.out[2];
  visit<Join<Floats, Halves>>(args.dtype, "fractional_max_pool", [&](auto type) {
    using T = typename decltype(type)::type;
    device::launch(stream, {device::ceil_div(total, kPerBlock), kThreads, kPerBlock * args.pool[1] * args.pool[2]},
                   FractionalMaxPool<T>{args});
  });
}

}  // namespace mybackend::kernels
