// all, any, count_nonzero: what counts is whether an element differs from zero; NaN does.
// Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce_ops.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

using Everything = Join<Floats, Integers, Booleans, Complexes, Unsigneds>;

struct Differs {
  uint8_t flip;  // 1 asks for elements that are zero instead
  template <class T>
  MB_DEVICE uint8_t operator()(T x) const {
    return uint8_t(uint8_t(x != T(0)) ^ flip);
  }
};

struct Flipped {
  bool flip;
  MB_DEVICE bool operator()(uint8_t x) const { return (x != 0) != flip; }
};

// all(x) is "none is zero"; one element that is found settles either.
template <class T>
struct Found : FoldOf<T, uint8_t, device::Or, Differs, Flipped> {
  MB_DEVICE bool settled(device::One<uint8_t> acc) const { return acc.a != 0; }
};

struct Counted {
  template <class T>
  MB_DEVICE int64_t operator()(T x) const {
    return int64_t(x != T(0));
  }
};

void run_logic(Stream stream, const Reduction& r, const Workspace& workspace, bool all) {
  visit<Everything>(compute_dtype(r.in_dtype), all ? "all" : "any", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, Found<T>{{uint8_t(0), {}, {uint8_t(all)}, {all}}});
  });
}

}  // namespace

MB_DEFINE_KERNEL(reduce_all, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  run_logic(stream, r, workspace, true);
}

MB_DEFINE_KERNEL(reduce_any, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  run_logic(stream, r, workspace, false);
}

MB_DEFINE_KERNEL(reduce_count_nonzero, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Everything>(compute_dtype(r.in_dtype), "count_nonzero", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, SumOf<T, int64_t, Counted>{0});
  });
}

}  // namespace mybackend::kernels
