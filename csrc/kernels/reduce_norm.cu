// Vector norms of any order, and sums of powers.
// Called by csrc/aten/reduce.cpp. Spec: test/ops/test_reduce.py.
#include "csrc/kernels/reduce_ops.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::kernels {
namespace {

struct Magnitude {
  template <class T>
  MB_DEVICE Real<T> operator()(T x) const {
    if constexpr (is_complex<T>) {
      return math::hypot(x.real(), x.imag());
    } else {
      return math::fabs(x);
    }
  }
};

struct Square {
  template <class T>
  MB_DEVICE Real<T> operator()(T x) const {
    if constexpr (is_complex<T>) {
      return x.real() * x.real() + x.imag() * x.imag();
    } else {
      return x * x;
    }
  }
};

struct NotZero {
  template <class T>
  MB_DEVICE Real<T> operator()(T x) const {
    return x != T(0) ? Real<T>(1) : Real<T>(0);
  }
};

template <class A>
struct Power {
  A p;
  template <class T>
  MB_DEVICE A operator()(T x) const {
    return math::pow(Magnitude{}(x), p);
  }
};

struct Root {
  template <class A>
  MB_DEVICE A operator()(A x) const {
    return math::sqrt(x);
  }
};

template <class A>
struct PowerRoot {
  A exponent;
  MB_DEVICE A operator()(A x) const { return math::pow(x, exponent); }
};

}  // namespace

MB_DEFINE_KERNEL(reduce_norm,
                 (Stream stream, const Reduction& r, const Workspace& workspace, double p, bool power_sum)) {
  visit<Join<Floats, Complexes>>(compute_dtype(r.in_dtype), power_sum ? "powsum" : "norm", [&](auto type) {
    using T = typename decltype(type)::type;
    using A = Real<T>;
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    auto run = [&](auto op) { run_reduction(stream, r, workspace, op); };
    if (p == 2 && power_sum) return run(SumOf<T, A, Square>{A(0)});
    if (p == 2) return run(SumOf<T, A, Square, Root>{A(0)});
    if (p == 1) return run(SumOf<T, A, Magnitude>{A(0)});
    if (p == 0) return run(SumOf<T, A, NotZero>{A(0)});
    if (p == kInfinity) return run(FoldOf<T, A, device::Larger, Magnitude>{A(0)});
    if (p == -kInfinity) return run(FoldOf<T, A, device::Smaller, Magnitude>{device::highest_of<A>()});
    run(SumOf<T, A, Power<A>, PowerRoot<A>>{A(0), {}, {A(p)}, {power_sum ? A(1) : A(1 / p)}});
  });
}

}  // namespace mybackend::kernels
