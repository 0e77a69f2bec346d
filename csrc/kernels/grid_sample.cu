// Samples of images at the places of a grid: nearest, linear in two or three dimensions, cubic in two.
//
// A sample is a weighted sum of taps, the product of those along each axis. A block works out the taps of a strip of
// places once, into shared memory, and then follows all channels over them. The gradient of the images is a scatter:
// with atomics where a block has many threads; where it has one, a block owns whole channels instead, so that the sum's
// order is that of the places. Formulas: bilinear interpolation, and the cubic convolution of Keys (IEEE Trans. ASSP,
// 1981) with a = -0.75. Called by csrc/aten/grid_sample.cpp. Spec: test/ops/test_grid_sample.py.
#include "csrc/kernels/grid_sample.h"

#include <algorithm>

#include "csrc/device/atomic.h"
#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kPlaces = 64;  // of a strip

// A position on an axis and its derivative by the grid's coordinate.
template <class A>
struct Position {
  A at, slope;
};

// K taps along an axis; an index below zero is outside the image.
template <class A, int K>
struct AxisTaps {
  int64_t index[K];
  A weight[K], slope[K];
};

// Mirrors at the ends `low / 2` and `high / 2` as often as it takes.
template <class A>
MB_DEVICE Position<A> reflect(Position<A> p, int64_t low, int64_t high) {
  if (low == high) return {A(0), A(0)};
  const A begin = A(low) / 2, span = A(high - low) / 2;
  const A offset = p.at - begin, distance = math::fabs(offset);
  const A extra = math::fmod(distance, span);
  const A turns = math::floor(distance / span);
  const bool back = turns - 2 * math::floor(turns / 2) != A(0);
  const A slope = offset < A(0) ? -p.slope : p.slope;
  return back ? Position<A>{span - extra + begin, -slope} : Position<A>{extra + begin, slope};
}

template <class A>
MB_DEVICE Position<A> clip(Position<A> p, int64_t size) {
  const A last = A(size - 1);
  if (!(p.at > A(0))) return {A(0), A(0)};
  return p.at >= last ? Position<A>{last, A(0)} : p;
}

template <class A>
MB_DEVICE Position<A> pad(Position<A> p, const GridSample& g, int64_t size) {
  if (g.padding == GridPadding::Reflection)
    p = g.align_corners ? reflect(p, 0, 2 * (size - 1)) : reflect(p, -1, 2 * size - 1);
  if (g.padding != GridPadding::Zeros) p = clip(p, size);
  // What no index can name (NaN too) is a place outside.
  return p.at > A(-2147483648.0) && p.at < A(2147483646.0) ? p : Position<A>{A(-100), p.slope};
}

MB_DEVICE int64_t inside(int64_t index, int64_t size) {
  return index >= 0 && index < size ? index : -1;
}

template <int K, class A>
MB_DEVICE AxisTaps<A, K> taps_of(A coordinate, const GridSample& g, int64_t size) {
  AxisTaps<A, K> taps;
  const A stretch = g.align_corners ? A(size - 1) / 2 : A(size) / 2;
  const Position<A> raw{g.align_corners ? (coordinate + 1) / 2 * A(size - 1) : ((coordinate + 1) * A(size) - 1) / 2,
                        stretch};
  if constexpr (K == 4) {
    // The taps are padded, not the position.
    const A safe = raw.at > A(-2147483648.0) && raw.at < A(2147483646.0) ? raw.at : A(-100);
    const A first = math::floor(safe), t = safe - first;
    constexpr A a = A(-0.75);
    for (int k = 0; k < 4; k++) {
      const A x = k < 2 ? t + A(1 - k) : A(k - 1) - t;  // distance from the tap
      const bool near = k == 1 || k == 2;
      taps.weight[k] = near ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
      const A by_distance = near ? (3 * (a + 2) * x - 2 * (a + 3)) * x : (3 * a * x - 10 * a) * x + 8 * a;
      taps.slope[k] = (k < 2 ? by_distance : -by_distance) * stretch;
      const Position<A> p = pad(Position<A>{first + A(k - 1), A(0)}, g, size);
      taps.index[k] = inside(int64_t(p.at), size);
    }
  } else {
    const Position<A> p = pad(raw, g, size);
    if constexpr (K == 1) {
      taps.index[0] = inside(int64_t(math::rint(p.at)), size);
      taps.weight[0] = A(1);
      taps.slope[0] = A(0);
    } else {
      const A first = math::floor(p.at);
      taps.index[0] = inside(int64_t(first), size);
      taps.index[1] = inside(int64_t(first) + 1, size);
      taps.weight[0] = first + 1 - p.at;
      taps.weight[1] = p.at - first;
      taps.slope[0] = -p.slope;
      taps.slope[1] = p.slope;
    }
  }
  return taps;
}

// KZ x K x K taps; KZ is 1 for two dimensions.
template <class S, int KZ, int K>
struct Sampler {
  using A = Compute<S>;
  static constexpr int kTaps = KZ * K * K;
  GridSample g;

  constexpr int64_t places() const { return g.out_size[0] * g.out_size[1] * g.out_size[2]; }
  constexpr int64_t strips() const { return device::ceil_div(places(), kPlaces); }
  constexpr int64_t plane() const { return g.in_size[0] * g.in_size[1] * g.in_size[2]; }
  MB_DEVICE int64_t width_of(int64_t first) const {
    return places() - first < kPlaces ? places() - first : int64_t(kPlaces);
  }

  // Calls f(tap number, index in the plane or -1, x taps, y taps, z taps, their numbers) for the taps of a place.
  template <class F>
  MB_DEVICE void each_tap(int64_t image, int64_t place, F f) const {
    const S* at = static_cast<const S*>(g.grid) + (image * places() + place) * g.dims;
    const AxisTaps<A, K> x = taps_of<K>(A(widen(at[0])), g, g.in_size[2]);
    const AxisTaps<A, K> y = taps_of<K>(A(widen(at[1])), g, g.in_size[1]);
    AxisTaps<A, KZ> z{{0}, {A(1)}, {A(0)}};
    if (g.dims == 3) z = taps_of<KZ>(A(widen(at[g.dims - 1])), g, g.in_size[0]);
    for (int k = 0; k < KZ; k++)
      for (int j = 0; j < K; j++)
        for (int i = 0; i < K; i++) {
          const bool outside = x.index[i] < 0 || y.index[j] < 0 || z.index[k] < 0;
          const int64_t where = (z.index[k] * g.in_size[1] + y.index[j]) * g.in_size[2] + x.index[i];
          f((k * K + j) * K + i, outside ? int64_t(-1) : where, x, i, y, j, z, k);
        }
  }
};

template <class S, class I, int KZ, int K>
struct Forward : Sampler<S, KZ, K> {
  using Base = Sampler<S, KZ, K>;
  using A = typename Base::A;
  static constexpr int kTaps = Base::kTaps;
  S* out;
  Forward(const GridSample& args, S* to) : Base{args}, out(to) {}

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, weight, kTaps * kPlaces);
    MB_SHARED(block, I, where, kTaps * kPlaces);
    A* const w = weight;
    I* const at = where;
    const int64_t image = block.index / this->strips(), first = block.index % this->strips() * kPlaces;
    const int64_t width = this->width_of(first), places = this->places(), plane = this->plane();
    block.each(width, [&](int64_t p) {
      this->each_tap(image, first + p,
                     [&](int tap, int64_t index, const auto& x, int i, const auto& y, int j, const auto& z, int k) {
                       w[tap * kPlaces + p] = x.weight[i] * y.weight[j] * z.weight[k];
                       at[tap * kPlaces + p] = I(index);
                     });
    });
    block.sync();
    const S* in = static_cast<const S*>(this->g.in) + image * this->g.channels * plane;
    S* to = out + image * this->g.channels * places + first;
    block.each2(this->g.channels, width, [=](int64_t c, int64_t p) {
      const S* x = in + c * plane;
      A sum = A(0);
      for (int tap = 0; tap < kTaps; tap++) {
        const I index = at[tap * kPlaces + p];
        const A value = A(widen(x[index < 0 ? 0 : index]));
        sum += w[tap * kPlaces + p] * (index < 0 ? A(0) : value);
      }
      to[c * places + p] = narrow<S>(sum);
    });
  }
};

// Channels one block handles where it has one thread.
constexpr int64_t kOwnedChannels = 8;

template <class S, class I, int KZ, int K>
struct BackwardInput : Sampler<S, KZ, K> {
  using Base = Sampler<S, KZ, K>;
  using A = typename Base::A;
  static constexpr int kTaps = Base::kTaps;
  const S* grad;
  A* grad_in;
  BackwardInput(const GridSample& args, const S* from, A* to) : Base{args}, grad(from), grad_in(to) {}

  int64_t blocks() const {
    return this->g.batch *
           (device::kThreadedBlocks ? this->strips() : device::ceil_div(this->g.channels, kOwnedChannels));
  }
  int64_t work() const {
    return kTaps * (device::kThreadedBlocks ? kPlaces * this->g.channels : this->places() * kOwnedChannels);
  }

  MB_DEVICE void operator()(Block block) const {
    const int64_t channels = this->g.channels;
    if constexpr (device::kThreadedBlocks) {
      const int64_t strips = this->strips();
      strip(block, block.index / strips, block.index % strips * kPlaces, 0, channels);
    } else {
      const int64_t groups = device::ceil_div(channels, kOwnedChannels);
      const int64_t begin = block.index % groups * kOwnedChannels;
      const int64_t count = channels - begin < kOwnedChannels ? channels - begin : kOwnedChannels;
      for (int64_t first = 0; first < this->places(); first += kPlaces)
        strip(block, block.index / groups, first, begin, count);
    }
  }

  MB_DEVICE void strip(Block block, int64_t image, int64_t first, int64_t begin, int64_t count) const {
    MB_SHARED(block, A, weight, kTaps * kPlaces);
    MB_SHARED(block, I, where, kTaps * kPlaces);
    A* const w = weight;
    I* const at = where;
    const int64_t width = this->width_of(first), places = this->places(), plane = this->plane();
    block.each(width, [&](int64_t p) {
      this->each_tap(image, first + p,
                     [&](int tap, int64_t index, const auto& x, int i, const auto& y, int j, const auto& z, int k) {
                       w[tap * kPlaces + p] = x.weight[i] * y.weight[j] * z.weight[k];
                       at[tap * kPlaces + p] = I(index);
                     });
    });
    block.sync();
    const S* from = grad + (image * this->g.channels + begin) * places + first;
    A* to = grad_in + (image * this->g.channels + begin) * plane;
    const auto add = [=](int64_t c, int64_t p) {
      const A g = A(widen(from[c * places + p]));
      for (int tap = 0; tap < kTaps; tap++) {
        const I index = at[tap * kPlaces + p];
        if (index < 0) continue;
        if constexpr (device::kThreadedBlocks)
          device::atomic_add(to + c * plane + index, w[tap * kPlaces + p] * g);
        else
          to[c * plane + index] += w[tap * kPlaces + p] * g;
      }
    };
    if constexpr (device::kThreadedBlocks) {
      block.each2(count, width, add);
    } else {  // places may share an element: their order matters
      for (int64_t c = 0; c < count; c++)
        for (int64_t p = 0; p < width; p++) add(c, p);
    }
  }
};

template <class S, class I, int KZ, int K>
struct BackwardGrid : Sampler<S, KZ, K> {
  using Base = Sampler<S, KZ, K>;
  using A = typename Base::A;
  static constexpr int kTaps = Base::kTaps;
  static constexpr int kDims = KZ == 1 ? 2 : 3;
  const S* grad;
  S* grad_grid;
  BackwardGrid(const GridSample& args, const S* from, S* to) : Base{args}, grad(from), grad_grid(to) {}

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, slope, kDims * kTaps * kPlaces);
    MB_SHARED(block, I, where, kTaps * kPlaces);
    MB_SHARED(block, A, sums, kDims * kPlaces);
    A *const d = slope, *const s = sums;
    I* const at = where;
    const int64_t image = block.index / this->strips(), first = block.index % this->strips() * kPlaces;
    const int64_t width = this->width_of(first), places = this->places(), plane = this->plane();
    constexpr int kNext = kTaps * kPlaces;  // from the slopes of one axis to those of the next
    // A place is one thread's throughout, so nothing but the end of the block needs a barrier.
    block.each(width, [&](int64_t p) {
      for (int axis = 0; axis < kDims; axis++) s[axis * kPlaces + p] = A(0);
      this->each_tap(image, first + p,
                     [&](int tap, int64_t index, const auto& x, int i, const auto& y, int j, const auto& z, int k) {
                       A* to = d + tap * kPlaces + p;
                       to[0] = x.slope[i] * y.weight[j] * z.weight[k];
                       to[kNext] = x.weight[i] * y.slope[j] * z.weight[k];
                       if constexpr (kDims == 3) to[2 * kNext] = x.weight[i] * y.weight[j] * z.slope[k];
                       at[tap * kPlaces + p] = I(index);
                     });
    });
    const S* in = static_cast<const S*>(this->g.in) + image * this->g.channels * plane;
    const S* from = grad + image * this->g.channels * places + first;
    for (int64_t c = 0; c < this->g.channels; c++) {
      const S *x = in + c * plane, *g = from + c * places;
      block.each(width, [=](int64_t p) {
        A sum[kDims] = {};
        for (int tap = 0; tap < kTaps; tap++) {
          const I index = at[tap * kPlaces + p];
          const A loaded = A(widen(x[index < 0 ? 0 : index])), value = index < 0 ? A(0) : loaded;
          for (int axis = 0; axis < kDims; axis++) sum[axis] += d[axis * kNext + tap * kPlaces + p] * value;
        }
        const A scale = A(widen(g[p]));
        for (int axis = 0; axis < kDims; axis++) s[axis * kPlaces + p] += sum[axis] * scale;
      });
    }
    S* to = grad_grid + (image * places + first) * this->g.dims;
    const int dims = this->g.dims;
    block.each(width, [=](int64_t p) {
      for (int axis = 0; axis < dims; axis++)
        to[p * dims + axis] = narrow<S>(axis < kDims ? s[axis * kPlaces + p] : A(0));
    });
  }
};

// Calls f(Type<S>, Type<I>, integral_constant<KZ>, integral_constant<K>) for the kind of `args`; I numbers a plane.
template <class F>
void visit_kinds(const GridSample& args, const char* name, F f) {
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  using Four = std::integral_constant<int, 4>;
  const bool small = args.in_size[0] * args.in_size[1] * args.in_size[2] <= 0x7fffffff;
  visit<Join<Floats, Halves>>(args.dtype, name, [&](auto type) {
    const auto kind = [&](auto index) {
      switch (args.interpolation) {
        case GridInterpolation::Nearest:
          return f(type, index, One{}, One{});
        case GridInterpolation::Bicubic:
          return f(type, index, One{}, Four{});
        case GridInterpolation::Bilinear:
          return args.dims == 3 ? f(type, index, Two{}, Two{}) : f(type, index, One{}, Two{});
      }
    };
    small ? kind(Type<int32_t>{}) : kind(Type<int64_t>{});
  });
}

}  // namespace

MB_DEFINE_KERNEL(grid_sample, (Stream stream, const GridSample& args, void* out)) {
  visit_kinds(args, "grid_sampler", [&](auto type, auto index, auto kz, auto k) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    const Forward<S, I, decltype(kz)::value, decltype(k)::value> kernel(args, static_cast<S*>(out));
    device::launch(stream, {args.batch * kernel.strips(), 128, kPlaces * args.channels * kernel.kTaps}, kernel);
  });
}

MB_DEFINE_KERNEL(grid_sample_backward_input, (Stream stream, const GridSample& args, const void* grad, void* grad_in)) {
  visit_kinds(args, "grid_sampler_backward", [&](auto type, auto index, auto kz, auto k) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    const BackwardInput<S, I, decltype(kz)::value, decltype(k)::value> kernel(args, static_cast<const S*>(grad),
                                                                              static_cast<Compute<S>*>(grad_in));
    device::launch(stream, {kernel.blocks(), 128, kernel.work()}, kernel);
  });
}

MB_DEFINE_KERNEL(grid_sample_backward_grid,
                 (Stream stream, const GridSample& args, const void* grad, void* grad_grid)) {
  visit_kinds(args, "grid_sampler_backward", [&](auto type, auto index, auto kz, auto k) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    const BackwardGrid<S, I, decltype(kz)::value, decltype(k)::value> kernel(args, static_cast<const S*>(grad),
                                                                             static_cast<S*>(grad_grid));
    device::launch(stream, {args.batch * kernel.strips(), kPlaces, kPlaces * args.channels * kernel.kTaps}, kernel);
  });
}

}  // namespace mybackend::kernels
