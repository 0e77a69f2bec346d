// The value that wins and where: argmax, argmin and the (values, indices) form of max and min. The first of equal
// values wins, and the first NaN wins over everything. Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

template <class T, bool largest>
struct Winner {
  using Input = T;
  using Acc = device::Two<T, int64_t>;
  using Order = std::conditional_t<largest, device::Larger, device::Smaller>;
  static constexpr bool positions = true;
  static constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

  MB_DEVICE Acc identity() const { return {largest ? device::lowest_of<T>() : device::highest_of<T>(), kNowhere}; }
  // Whether (1) y takes the place of x: one comparison a step, in integers, because that vectorises.
  MB_DEVICE int64_t beats(Acc y, Acc x) const {
    const int64_t first = y.b < x.b ? 1 : 0;
    const int64_t tie = y.a == x.a ? first : 0;
    const int64_t both_nan = x.a != x.a ? first : 1;
    const int64_t nan = y.a != y.a ? both_nan : tie;
    const bool better = largest ? y.a > x.a : y.a < x.a;
    return better ? 1 : nan;
  }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const int64_t take = beats(y, x);
    return {take != 0 ? y.a : x.a, take != 0 ? y.b : x.b};
  }
  MB_DEVICE Acc term(T x, int64_t position) const { return {x, position}; }
  MB_DEVICE Acc quad(T x0, T x1, T x2, T x3, int64_t p) const {
    return combine(combine({x0, p}, {x1, p + 1}), combine({x2, p + 2}, {x3, p + 3}));
  }
  template <class X>
  MB_DEVICE Acc absorb(Block block, Acc acc, int64_t n, int64_t p, X x) const {
    return device::fold_positions(block, *this, acc, n, p, x);
  }
  MB_DEVICE void store(const Reduction& r, char* value, char* position, Acc acc) const {
    if (r.out[0] != nullptr) device::store_one(value, acc.a, r.out_dtype[0]);
    device::store_one(position, acc.b, r.out_dtype[1]);
  }
};

template <bool largest>
void run_winner(Stream stream, const Reduction& r, const Workspace& workspace, const char* name) {
  visit<Join<Floats, Integers, Booleans>>(compute_dtype(r.in_dtype), name, [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, Winner<T, largest>{});
  });
}

}  // namespace

MB_DEFINE_KERNEL(reduce_max_index, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  run_winner<true>(stream, r, workspace, r.out[0] == nullptr ? "argmax" : "max");
}

MB_DEFINE_KERNEL(reduce_min_index, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  run_winner<false>(stream, r, workspace, r.out[0] == nullptr ? "argmin" : "min");
}

}  // namespace mybackend::kernels
