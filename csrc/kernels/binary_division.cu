// Division that rounds, and its remainders. Integers divided by zero are reported as upstream's CPU kernels do.
// Called by csrc/aten/binary.cpp. Spec: test/ops/test_pointwise.py.
#include "csrc/device/errors.h"
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

using device::ErrorRecord;

// For integers `f.integer(x, y)` is only asked for what the processor can divide: not by 0, and the lowest number not
// by -1, whose quotient wraps.
template <class T, class F>
struct Divide {
  ErrorRecord* errors;

  MB_DEVICE T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      return F::floating(x, y);
    } else {
      if (y == T(0)) {
        device::report(errors, device::kDivisionByZero);
        return T(0);
      }
      if constexpr (std::is_signed_v<T>) {
        if (y == T(-1)) return F::by_minus_one(x);
      }
      return F::integer(x, y);
    }
  }
};

template <class T>
MB_DEVICE T negated(T x) {
  using U = std::make_unsigned_t<T>;
  return T(U(0) - U(x));
}

struct Truncated {
  template <class T>
  MB_DEVICE static T floating(T x, T y) {
    return math::trunc(x / y);
  }
  template <class T>
  MB_DEVICE static T integer(T x, T y) {
    return T(x / y);
  }
  template <class T>
  MB_DEVICE static T by_minus_one(T x) {
    return negated(x);
  }
};

struct Floored {
  // Python's: exact where x / y rounds to a whole number it does not reach, and with the sign of the exact quotient.
  template <class T>
  MB_DEVICE static T floating(T x, T y) {
    const T rest = math::fmod(x, y);
    T quotient = (x - rest) / y;
    quotient = rest != 0 && (y < 0) != (rest < 0) ? quotient - T(1) : quotient;
    const T whole = math::floor(quotient);
    const T floored = quotient - whole > T(0.5) ? whole + T(1) : whole;
    return y == 0 ? x / y : quotient == 0 ? math::copysign(T(0), x / y) : floored;
  }
  template <class T>
  MB_DEVICE static T integer(T x, T y) {
    const T quotient = T(x / y);
    return T(quotient - T(quotient * y != x && (x < 0) != (y < 0)));
  }
  template <class T>
  MB_DEVICE static T by_minus_one(T x) {
    return negated(x);
  }
};

// The remainder has the sign of the divisor.
struct Modulo {
  template <class T>
  MB_DEVICE static T floating(T x, T y) {
    const T rest = math::fmod(x, y);
    return rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
  }
  template <class T>
  MB_DEVICE static T integer(T x, T y) {
    const T rest = T(x % y);
    return T(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }
  template <class T>
  MB_DEVICE static T by_minus_one(T) {
    return T(0);
  }
};

// The remainder has the sign of the dividend.
struct Rest {
  template <class T>
  MB_DEVICE static T floating(T x, T y) {
    return math::fmod(x, y);
  }
  template <class T>
  MB_DEVICE static T integer(T x, T y) {
    return T(x % y);
  }
  template <class T>
  MB_DEVICE static T by_minus_one(T) {
    return T(0);
  }
};

template <class F>
void divide(Stream stream, const Operands<3>& o, const char* name, ErrorRecord* errors) {
  visit_compute<Reals>(o, name, [&](auto type) {
    using T = typename decltype(type)::type;
    binary<T>(stream, o, Divide<T, F>{errors});
  });
}

// Half and bfloat16 quotients are rounded before they are truncated, as upstream's are.
template <class Stored>
struct TruncateRounded {
  MB_DEVICE float operator()(float x, float y) const { return math::trunc(float(Stored(x / y))); }
};

}  // namespace

MB_DEFINE_KERNEL(div_floor, (Stream stream, const Operands<3>& o, ErrorRecord* errors)) {
  divide<Floored>(stream, o, "div_floor", errors);
}
MB_DEFINE_KERNEL(div_trunc, (Stream stream, const Operands<3>& o, ErrorRecord* errors)) {
  if (o.compute == DType::Half) return binary<float>(stream, o, TruncateRounded<half>{});
  if (o.compute == DType::BFloat16) return binary<float>(stream, o, TruncateRounded<bfloat16>{});
  divide<Truncated>(stream, o, "div_trunc", errors);
}
MB_DEFINE_KERNEL(remainder, (Stream stream, const Operands<3>& o, ErrorRecord* errors)) {
  divide<Modulo>(stream, o, "remainder", errors);
}
MB_DEFINE_KERNEL(fmod, (Stream stream, const Operands<3>& o, ErrorRecord* errors)) {
  divide<Rest>(stream, o, "fmod", errors);
}

}  // namespace mybackend::kernels
