// The passes over data that batch norm and group norm share: moments, gradient sums, and the two normalizing loops.
//
// Planes: a block a plane of s dense elements. Rows (channels last): a block takes a strip of up to kLanes channels of
// a group of rows; sums of a channel are kept in shared memory and touched by one thread only. Called by
// csrc/aten/batch_norm.cpp and group_norm.cpp. Spec: test/ops/test_normalization.py.
#include <algorithm>

#include "csrc/device/portable.h"
#include "csrc/device/widen.h"
#include "csrc/kernels/channel_norm.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kLanes = 128;

// A block's share of channels-last data: rows [begin, end) of channels [first, first + width).
struct Strip {
  int64_t group, begin, end, first, width;

  MB_DEVICE Strip(int64_t index, const ChannelLayout& layout, int64_t groups) {
    const int64_t strips = device::ceil_div(layout.c, kLanes), rows = layout.n * layout.s;
    group = index / strips;
    first = index % strips * kLanes;
    width = layout.c - first < kLanes ? layout.c - first : kLanes;
    begin = rows * group / groups;
    end = rows * (group + 1) / groups;
  }
};

template <class S>
struct PlaneMoments {
  using A = Compute<S>;
  const S* in;
  A* means;
  A* squares;
  int64_t s;

  MB_DEVICE void operator()(Block block) const {
    const S* x = in + block.index * s;
    const A mean = block.sum<A>(s, [&](int64_t i) { return widen(x[i]); }) / A(s);
    const A square = block.sum<A>(s, [&](int64_t i) {
      const A centered = widen(x[i]) - mean;
      return centered * centered;
    });
    block.each(1, [&](int64_t) {
      means[block.index] = mean;
      squares[block.index] = square;
    });
  }
};

template <class S>
struct StripMoments {
  using A = Compute<S>;
  const S* in;
  A* means;
  A* squares;
  ChannelLayout layout;
  int64_t groups;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, mean, kLanes);
    MB_SHARED(block, A, square, kLanes);
    const Strip strip(block.index, layout, groups);
    block.each(strip.width, [&](int64_t i) {
      mean[i] = A(0);
      square[i] = A(0);
    });
    for (int64_t row = strip.begin; row < strip.end; row++) {
      const S* x = in + row * layout.c + strip.first;
      block.each(strip.width, [&](int64_t i) { mean[i] += widen(x[i]); });
    }
    const A count = A(strip.end - strip.begin);
    block.each(strip.width, [&](int64_t i) { mean[i] /= count; });
    for (int64_t row = strip.begin; row < strip.end; row++) {
      const S* x = in + row * layout.c + strip.first;
      block.each(strip.width, [&](int64_t i) {
        const A centered = widen(x[i]) - mean[i];
        square[i] += centered * centered;
      });
    }
    const int64_t at = strip.group * layout.c + strip.first;
    block.each(strip.width, [&](int64_t i) {
      means[at + i] = mean[i];
      squares[at + i] = square[i];
    });
  }
};

template <class S>
struct PlaneGradientSums {
  using A = Compute<S>;
  const S* grad;
  const S* in;
  const A* means;
  A* sums;
  A* products;
  int64_t c, s;

  MB_DEVICE void operator()(Block block) const {
    const S* g = grad + block.index * s;
    const S* x = in + block.index * s;
    const A mean = means[block.index % c];
    const A sum = block.sum<A>(s, [&](int64_t i) { return widen(g[i]); });
    const A product = block.sum<A>(s, [&](int64_t i) { return widen(g[i]) * (widen(x[i]) - mean); });
    block.each(1, [&](int64_t) {
      sums[block.index] = sum;
      products[block.index] = product;
    });
  }
};

template <class S>
struct StripGradientSums {
  using A = Compute<S>;
  const S* grad;
  const S* in;
  const A* means;
  A* sums;
  A* products;
  ChannelLayout layout;
  int64_t groups;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, sum, kLanes);
    MB_SHARED(block, A, product, kLanes);
    const Strip strip(block.index, layout, groups);
    const A* mean = means + strip.first;
    block.each(strip.width, [&](int64_t i) {
      sum[i] = A(0);
      product[i] = A(0);
    });
    for (int64_t row = strip.begin; row < strip.end; row++) {
      const S* g = grad + row * layout.c + strip.first;
      const S* x = in + row * layout.c + strip.first;
      block.each(strip.width, [&](int64_t i) {
        const A value = widen(g[i]);
        sum[i] += value;
        product[i] += value * (widen(x[i]) - mean[i]);
      });
    }
    const int64_t at = strip.group * layout.c + strip.first;
    block.each(strip.width, [&](int64_t i) {
      sums[at + i] = sum[i];
      products[at + i] = product[i];
    });
  }
};

template <class S>
struct Normalize {
  using A = Compute<S>;
  const S* in;
  const A* mean;
  const A* scale;
  const A* shift;
  S* out;
  ChannelLayout layout;
  int64_t groups;

  MB_DEVICE void plane(Block block) const {
    const int64_t channel = block.index % layout.c;
    const A m = mean[channel], a = scale[channel], b = shift == nullptr ? A(0) : shift[channel];
    const S* x = in + block.index * layout.s;
    S* y = out + block.index * layout.s;
    block.each(layout.s, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - m) * a + b); });
  }

  MB_DEVICE void rows(Block block) const {
    const Strip strip(block.index, layout, groups);
    const A* m = mean + strip.first;
    const A* a = scale + strip.first;
    for (int64_t row = strip.begin; row < strip.end; row++) {
      const S* x = in + row * layout.c + strip.first;
      S* y = out + row * layout.c + strip.first;
      if (shift == nullptr) {
        block.each(strip.width, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - m[i]) * a[i]); });
      } else {
        const A* b = shift + strip.first;
        block.each(strip.width, [&](int64_t i) { y[i] = narrow<S>((widen(x[i]) - m[i]) * a[i] + b[i]); });
      }
    }
  }

  MB_DEVICE void operator()(Block block) const { layout.channels_last ? rows(block) : plane(block); }
};

template <class S>
struct NormalizeBackward {
  using A = Compute<S>;
  const S* grad;
  const S* in;
  const A* mean;
  const A* a;
  const A* b;
  const A* c;
  S* grad_in;
  ChannelLayout layout;
  int64_t groups;

  MB_DEVICE void plane(Block block) const {
    const int64_t channel = block.index % layout.c;
    const A m = mean[channel], ka = a[channel], kb = b[channel], kc = c[channel];
    const S* g = grad + block.index * layout.s;
    const S* x = in + block.index * layout.s;
    S* dx = grad_in + block.index * layout.s;
    block.each(layout.s, [&](int64_t i) { dx[i] = narrow<S>(ka * widen(g[i]) + kb * (widen(x[i]) - m) + kc); });
  }

  MB_DEVICE void rows(Block block) const {
    const Strip strip(block.index, layout, groups);
    const A *m = mean + strip.first, *ka = a + strip.first, *kb = b + strip.first, *kc = c + strip.first;
    for (int64_t row = strip.begin; row < strip.end; row++) {
      const S* g = grad + row * layout.c + strip.first;
      const S* x = in + row * layout.c + strip.first;
      S* dx = grad_in + row * layout.c + strip.first;
      block.each(strip.width,
                 [&](int64_t i) { dx[i] = narrow<S>(ka[i] * widen(g[i]) + kb[i] * (widen(x[i]) - m[i]) + kc[i]); });
    }
  }

  MB_DEVICE void operator()(Block block) const { layout.channels_last ? rows(block) : plane(block); }
};

// A grid over the groups of the data: planes, or strips of groups of rows.
device::Grid grid_of(const ChannelLayout& layout) {
  const int64_t groups = channel_groups(layout);
  if (layout.channels_last) {
    const int64_t rows = device::ceil_div(layout.n * layout.s, std::max<int64_t>(1, groups));
    return {groups * device::ceil_div(layout.c, kLanes), int(std::min<int64_t>(layout.c, kLanes)),
            rows * std::min<int64_t>(layout.c, kLanes)};
  }
  const int threads = int(std::min<int64_t>(512, std::max<int64_t>(32, device::ceil_div(layout.s, 8))));
  return {layout.n * layout.c, threads, layout.s};
}

template <class F>
void visit_stored(DType dtype, const char* op, F f) {
  visit<Join<Floats, Halves>>(dtype, op, f);
}

}  // namespace

MB_DEFINE_KERNEL(channel_moments,
                 (Stream stream, const ChannelLayout& layout, DType dtype, const void* in, void* mean, void* squares)) {
  visit_stored(dtype, "batch_norm", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    const S* x = static_cast<const S*>(in);
    A* m = static_cast<A*>(mean);
    A* q = static_cast<A*>(squares);
    if (layout.channels_last)
      return device::launch(stream, grid_of(layout), StripMoments<S>{x, m, q, layout, channel_groups(layout)});
    device::launch(stream, grid_of(layout), PlaneMoments<S>{x, m, q, layout.s});
  });
}

MB_DEFINE_KERNEL(channel_gradient_sums, (Stream stream, const ChannelLayout& layout, DType dtype, const void* grad,
                                         const void* in, const void* mean, void* sum, void* product)) {
  visit_stored(dtype, "batch_norm_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    const S* g = static_cast<const S*>(grad);
    const S* x = static_cast<const S*>(in);
    const A* m = static_cast<const A*>(mean);
    A* sums = static_cast<A*>(sum);
    A* products = static_cast<A*>(product);
    if (layout.channels_last)
      return device::launch(stream, grid_of(layout),
                            StripGradientSums<S>{g, x, m, sums, products, layout, channel_groups(layout)});
    device::launch(stream, grid_of(layout), PlaneGradientSums<S>{g, x, m, sums, products, layout.c, layout.s});
  });
}

MB_DEFINE_KERNEL(channel_normalize, (Stream stream, const ChannelLayout& layout, DType dtype, const void* in,
                                     const void* mean, const void* scale, const void* shift, void* out)) {
  visit_stored(dtype, "batch_norm", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    device::launch(stream, grid_of(layout),
                   Normalize<S>{static_cast<const S*>(in), static_cast<const A*>(mean), static_cast<const A*>(scale),
                                static_cast<const A*>(shift), static_cast<S*>(out), layout, channel_groups(layout)});
  });
}

MB_DEFINE_KERNEL(channel_normalize_backward,
                 (Stream stream, const ChannelLayout& layout, DType dtype, const void* grad, const void* in,
                  const void* mean, const void* a, const void* b, const void* c, void* grad_in)) {
  visit_stored(dtype, "batch_norm_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    device::launch(
        stream, grid_of(layout),
        NormalizeBackward<S>{static_cast<const S*>(grad), static_cast<const S*>(in), static_cast<const A*>(mean),
                             static_cast<const A*>(a), static_cast<const A*>(b), static_cast<const A*>(c),
                             static_cast<S*>(grad_in), layout, channel_groups(layout)});
  });
}

}  // namespace mybackend::kernels
