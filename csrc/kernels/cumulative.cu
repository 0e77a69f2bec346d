// cumsum and cumprod. Floating-point elements are added (multiplied) in double, as ATen does on the CPU.
// Called by csrc/aten/cumulative.cpp. Spec: test/ops/test_cumulative.py.
#include "csrc/kernels/cumulative.h"

#include "csrc/kernels/scan.h"

namespace mybackend::kernels {
namespace {

template <class T>
struct WideOf {
  using type = std::conditional_t<std::is_same_v<T, float>, double,
                                  std::conditional_t<std::is_same_v<T, complex<float>>, complex<double>, T>>;
};

template <class T, class F, int start>
struct Running {
  using Input = T;
  using Fn = F;
  using A = typename WideOf<T>::type;
  using Acc = device::One<A>;
  static constexpr bool positions = false;
  static constexpr bool chains = true;

  MB_DEVICE Acc identity() const { return {A(start)}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const { return {Fn{}(x.a, y.a)}; }
  MB_DEVICE Acc term(T x, int64_t) const { return {convert<A>(x)}; }
  MB_DEVICE T value(Acc acc) const { return convert<T>(acc.a); }
  template <class Terms>
  MB_DEVICE Acc total(int64_t n, Terms terms) const {
    return {device::fold<A>(Block{}, n, A(start), Fn{}, [=](int64_t i) { return terms(i).a; })};
  }
};

using Scanned = Join<Floats, Integers, Complexes>;

}  // namespace

MB_DEFINE_KERNEL(cumulative_sum, (Stream stream, const Scan& s, const Workspace& workspace)) {
  visit<Scanned>(compute_dtype(s.in_dtype), "cumsum", [&](auto type) {
    run_scan(stream, s, workspace, Running<typename decltype(type)::type, device::Add, 0>{});
  });
}

MB_DEFINE_KERNEL(cumulative_prod, (Stream stream, const Scan& s, const Workspace& workspace)) {
  visit<Scanned>(compute_dtype(s.in_dtype), "cumprod", [&](auto type) {
    run_scan(stream, s, workspace, Running<typename decltype(type)::type, device::Multiply, 1>{});
  });
}

}  // namespace mybackend::kernels
