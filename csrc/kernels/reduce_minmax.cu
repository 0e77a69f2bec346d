// Largest and smallest values; a NaN wins.
// Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce_ops.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

using Ordered = Join<Floats, Integers, Booleans>;

template <class T>
struct SmallestAndLargest {
  using Input = T;
  using Acc = device::Two<T, T>;
  static constexpr bool positions = false;

  MB_DEVICE Acc identity() const { return {device::highest_of<T>(), device::lowest_of<T>()}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const { return {device::Smaller{}(x.a, y.a), device::Larger{}(x.b, y.b)}; }
  MB_DEVICE Acc term(T x, int64_t) const { return {x, x}; }
  MB_DEVICE Acc quad(T x0, T x1, T x2, T x3, int64_t) const {
    return combine(combine({x0, x0}, {x1, x1}), combine({x2, x2}, {x3, x3}));
  }
  template <class X>
  MB_DEVICE Acc absorb(Block block, Acc acc, int64_t n, int64_t, X x) const {
    auto at = [=](int64_t i) { return T(x[i]); };
    return combine(acc, {device::fold<T, device::kSpread<X>>(block, n, device::highest_of<T>(), device::Smaller{}, at),
                         device::fold<T, device::kSpread<X>>(block, n, device::lowest_of<T>(), device::Larger{}, at)});
  }
  MB_DEVICE void store(const Reduction& r, char* smallest, char* largest, Acc acc) const {
    device::store_one(smallest, acc.a, r.out_dtype[0]);
    device::store_one(largest, acc.b, r.out_dtype[1]);
  }
};

}  // namespace

MB_DEFINE_KERNEL(reduce_max, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Ordered>(compute_dtype(r.in_dtype), "max_values", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, FoldOf<T, T, device::Larger>{device::lowest_of<T>()});
  });
}

MB_DEFINE_KERNEL(reduce_min, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Ordered>(compute_dtype(r.in_dtype), "min_values", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, FoldOf<T, T, device::Smaller>{device::highest_of<T>()});
  });
}

MB_DEFINE_KERNEL(reduce_aminmax, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Ordered>(compute_dtype(r.in_dtype), "aminmax", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, SmallestAndLargest<T>{});
  });
}

}  // namespace mybackend::kernels
