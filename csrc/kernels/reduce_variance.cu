// Variance, standard deviation and mean in one go: means and squared deviations of chunks, joined by Chan's formula.
// Called by csrc/aten/reduce_variance.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

template <class T>
struct Moments {
  using Input = T;
  using Acc = device::Three<T, T, T>;  // mean, sum of squared deviations from it, number of elements
  static constexpr bool positions = false;
  double correction;
  bool take_root;

  MB_DEVICE Acc identity() const { return {T(0), T(0), T(0)}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const T n = x.c + y.c;
    const T share = n == T(0) ? T(0) : y.c / n;
    const T apart = y.a - x.a;
    return {x.a + apart * share, x.b + y.b + apart * apart * x.c * share, n};
  }
  MB_DEVICE Acc term(T x, int64_t) const { return {x, T(0), T(1)}; }
  MB_DEVICE Acc quad(T x0, T x1, T x2, T x3, int64_t) const {
    const T mean = ((x0 + x1) + (x2 + x3)) * T(0.25);
    const T d0 = x0 - mean, d1 = x1 - mean, d2 = x2 - mean, d3 = x3 - mean;
    return {mean, (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3), T(4)};
  }
  template <class X>
  MB_DEVICE Acc absorb(Block block, Acc acc, int64_t n, int64_t, X x) const {
    const T count = T(n);
    const T mean =
        device::fold<T, device::kSpread<X>>(block, n, T(0), device::Add{}, [=](int64_t i) { return T(x[i]); }) / count;
    const T squares = device::fold<T, device::kSpread<X>>(block, n, T(0), device::Add{}, [=](int64_t i) {
      const T d = T(x[i]) - mean;
      return d * d;
    });
    return combine(acc, {mean, squares, count});
  }
  MB_DEVICE void store(const Reduction& r, char* spread, char* mean, Acc acc) const {
    const double freedom = double(r.count) - correction;
    const T variance = acc.b / T(freedom > 0 ? freedom : 0);
    device::store_one(spread, take_root ? T(math::sqrt(variance)) : variance, r.out_dtype[0]);
    if (r.out[1] != nullptr) device::store_one(mean, acc.a, r.out_dtype[1]);
  }
};

}  // namespace

MB_DEFINE_KERNEL(reduce_variance,
                 (Stream stream, const Reduction& r, const Workspace& workspace, double correction, bool take_root)) {
  visit<Floats>(compute_dtype(r.in_dtype), take_root ? "std" : "var", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, Moments<T>{correction, take_root});
  });
}

}  // namespace mybackend::kernels
