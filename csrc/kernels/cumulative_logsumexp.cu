// logcumsumexp: log(exp(x_0) + ... + exp(x_i)), in double for all but double's own precision.
//
// An accumulator is a peak and a sum of exponentials relative to it, so that a line needs one exp an element and a log
// where a result is stored. NaN and infinities come out as log and exp of the exact sum would.
// Called by csrc/aten/cumulative.cpp. Spec: test/ops/test_cumulative.py.
#include "csrc/kernels/cumulative.h"
#include "csrc/kernels/scan.h"

namespace mybackend::kernels {
namespace {

template <class T>
struct RunningLogSumExp {
  using Input = T;
  using Acc = device::Two<double, double>;  // peak, sum of exp(x - peak)
  static constexpr bool positions = false;
  static constexpr bool chains = false;

  MB_DEVICE Acc identity() const { return {device::lowest_of<double>(), 0.0}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const double peak = device::Larger{}(x.a, y.a);
    return {peak, x.b * relative(x.a, peak) + y.b * relative(y.a, peak)};
  }
  MB_DEVICE Acc term(T x, int64_t) const { return {double(x), 1.0}; }
  MB_DEVICE T value(Acc acc) const { return T(acc.a + math::log(acc.b)); }

 private:
  // exp(x - peak), also where both are the same infinity.
  MB_DEVICE static double relative(double x, double peak) { return x == peak ? 1.0 : math::exp(x - peak); }
};

// Complex numbers, by their real parts' peak.
template <class T>
struct RunningComplexLogSumExp {
  using Input = complex<T>;
  using Acc = device::Three<double, double, double>;  // peak of real parts; real and imaginary part of the sum
  static constexpr bool positions = false;
  static constexpr bool chains = false;

  MB_DEVICE Acc identity() const { return {device::lowest_of<double>(), 0.0, 0.0}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const {
    const double peak = device::Larger{}(x.a, y.a);
    const double u = relative(x.a, peak), v = relative(y.a, peak);
    return {peak, x.b * u + y.b * v, x.c * u + y.c * v};
  }
  MB_DEVICE Acc term(complex<T> x, int64_t) const {
    return {double(x.real()), math::cos(double(x.imag())), math::sin(double(x.imag()))};
  }
  MB_DEVICE complex<T> value(Acc acc) const {
    return complex<T>(T(acc.a + math::log(math::hypot(acc.b, acc.c))), T(math::atan2(acc.c, acc.b)));
  }

 private:
  MB_DEVICE static double relative(double x, double peak) { return x == peak ? 1.0 : math::exp(x - peak); }
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
