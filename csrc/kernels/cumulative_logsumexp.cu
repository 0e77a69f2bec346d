// logcumsumexp: log(exp(x_0) + ... + exp(x_i)), in double for all but double's own precision.
//
// An accumulator is a peak and a sum of exponentials relative to it, so that a line needs one exp an element and a log
// where a result is stored. NaN and infinities come out as log and exp of the exact sum would.
// Called by csrc/aten/cumulative.cpp. Spec: test/ops/test_cumulative.py.
#include "csrc/kernels/cumulative.h"
#include "csrc/kernels/scan.h"

namespace mybackend::kernels {
namespace {

// exp(x - peak), also where both are the same infinity.
MB_DEVICE double relative_exp(double x, double peak) {
  return x == peak ? 1.0 : math::exp(x - peak);
}

template <class T>
struct RunningLogSumExp {
  using Input = T;
  using Acc = device::Two<double, double>;  // peak, sum of exp(x - peak)
  static constexpr bool positions = false;
  static constexpr bool chains = false;

  MB_DEVICE Acc identity() const { return {device::lowest_of<double>(), 0.0}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const double peak = device::Larger{}(x.a, y.a);
    return {peak, x.b * relative_exp(x.a, peak) + y.b * relative_exp(y.a, peak)};
  }
  MB_DEVICE Acc term(T x, int64_t) const { return {double(x), 1.0}; }
  MB_DEVICE T value(Acc acc) const { return T(acc.a + math::log(acc.b)); }
};

// Complex numbers: the logarithm itself is kept. Its imaginary part goes on from that of the larger summand and is not
// brought back to (-pi, pi], as in ATen.
template <class T>
struct RunningComplexLogSumExp {
  using Input = complex<T>;
  using Acc = device::Two<double, double>;  // real and imaginary part
  static constexpr bool positions = false;
  static constexpr bool chains = false;

  MB_DEVICE Acc identity() const { return {device::lowest_of<double>(), 0.0}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const bool x_is_less = x.a < y.a || x.a != x.a;
    const Acc low = x_is_less ? x : y, high = x_is_less ? y : x;
    const double ratio = relative_exp(low.a, high.a), turn = low.b - high.b;
    const double re = ratio * math::cos(turn), im = ratio * math::sin(turn);
    return {high.a + 0.5 * math::log1p(2 * re + re * re + im * im), high.b + math::atan2(im, 1 + re)};
  }
  MB_DEVICE Acc term(complex<T> x, int64_t) const { return {double(x.real()), double(x.imag())}; }
  MB_DEVICE complex<T> value(Acc acc) const { return complex<T>(T(acc.a), T(acc.b)); }
};

}  // namespace

MB_DEFINE_KERNEL(cumulative_logsumexp, (Stream stream, const Scan& s, const Workspace& workspace)) {
  visit<Join<Floats, Complexes>>(compute_dtype(s.in_dtype), "logcumsumexp", [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_complex<T>)
      run_scan(stream, s, workspace, RunningComplexLogSumExp<Real<T>>{});
    else
      run_scan(stream, s, workspace, RunningLogSumExp<T>{});
  });
}

}  // namespace mybackend::kernels
