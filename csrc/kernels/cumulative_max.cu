// cummax and cummin.
// Called by csrc/aten/cumulative.cpp. Spec: test/ops/test_cumulative.py.
#include "csrc/kernels/cumulative.h"
#include "csrc/kernels/scan.h"

namespace mybackend::kernels {
namespace {

template <class T, bool largest>
struct RunningWinner {
  using Input = T;
  using Acc = device::Two<T, int64_t>;
  static constexpr bool positions = true;
  static constexpr bool chains = false;

  MB_DEVICE Acc identity() const { return {largest ? device::lowest_of<T>() : device::highest_of<T>(), 0}; }
  // Of equals, and of two NaNs, the later one.
  MB_DEVICE Acc combine(Acc earlier, Acc later) const {
    const bool reaches = largest ? later.a >= earlier.a : later.a <= earlier.a;
    const int64_t nan = later.a != later.a ? 1 : 0;
    const int64_t take = reaches ? 1 : nan;
    return {take != 0 ? later.a : earlier.a, take != 0 ? later.b : earlier.b};
  }
  MB_DEVICE Acc term(T x, int64_t position) const { return {x, position}; }
  MB_DEVICE T value(Acc acc) const { return acc.a; }
};

}  // namespace

MB_DEFINE_KERNEL(cumulative_max, (Stream stream, const Scan& s, const Workspace& workspace)) {
  visit<Join<Floats, Integers, Booleans>>(compute_dtype(s.in_dtype), "cummax", [&](auto type) {
    run_scan(stream, s, workspace, RunningWinner<typename decltype(type)::type, true>{});
  });
}

MB_DEFINE_KERNEL(cumulative_min, (Stream stream, const Scan& s, const Workspace& workspace)) {
  visit<Join<Floats, Integers, Booleans>>(compute_dtype(s.in_dtype), "cummin", [&](auto type) {
    run_scan(stream, s, workspace, RunningWinner<typename decltype(type)::type, false>{});
  });
}

}  // namespace mybackend::kernels
