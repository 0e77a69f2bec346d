// sum, nansum and mean; half and bfloat16 are added in float, everything else in its own type.
// Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce_ops.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

struct ZeroForNan {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    if constexpr (is_complex<T>) {
      return math::isnan(x) ? T(0) : x;
    } else {
      return x != x ? T(0) : x;
    }
  }
};

template <class A>
struct Divided {
  Real<A> count;
  MB_DEVICE A operator()(A x) const { return x / count; }
};

}  // namespace

MB_DEFINE_KERNEL(reduce_sum, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Join<Floats, Integers, Booleans, Complexes>>(compute_dtype(r.in_dtype), "sum", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, SumOf<T, T>{T(0)});
  });
}

MB_DEFINE_KERNEL(reduce_nansum, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Join<Floats, Complexes>>(compute_dtype(r.in_dtype), "nansum", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, SumOf<T, T, ZeroForNan>{T(0)});
  });
}

MB_DEFINE_KERNEL(reduce_mean, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Join<Floats, Complexes>>(compute_dtype(r.in_dtype), "mean", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, SumOf<T, T, Same, Divided<T>>{T(0), {}, {}, {Real<T>(r.count)}});
  });
}

}  // namespace mybackend::kernels
