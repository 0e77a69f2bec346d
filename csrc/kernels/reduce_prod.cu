// prod, and the exclusive or of bits that hash_tensor is.
// Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce_ops.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

// Floating-point elements count with the bits of their value as a double.
struct Bits {
  template <class T>
  MB_DEVICE uint64_t operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      const double wide = double(x);
      uint64_t bits;
      memcpy(&bits, &wide, sizeof(bits));
      return bits;
    } else {
      return uint64_t(x);
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(reduce_prod, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Join<Floats, Integers, Booleans, Complexes>>(compute_dtype(r.in_dtype), "prod", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, FoldOf<T, T, device::Multiply>{T(1)});
  });
}

MB_DEFINE_KERNEL(reduce_xor, (Stream stream, const Reduction& r, const Workspace& workspace)) {
  visit<Join<Floats, Integers, Booleans>>(compute_dtype(r.in_dtype), "xor_sum", [&](auto type) {
    using T = typename decltype(type)::type;
    run_reduction(stream, r, workspace, FoldOf<T, uint64_t, device::Xor, Bits>{0});
  });
}

}  // namespace mybackend::kernels
