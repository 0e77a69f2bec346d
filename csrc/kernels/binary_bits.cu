// Bitwise, logical and integer functions of two operands. Called by csrc/aten/binary.cpp. Spec:
// test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

using Words = Join<Integers, Booleans, Unsigneds>;

MB_BINARY(bitwise_and, Words, return T(x & y);)
MB_BINARY(bitwise_or, Words, return T(x | y);)
MB_BINARY(bitwise_xor, Words, return T(x ^ y);)

// Shifts by less than 0 or by the width and more give what shifting bit by bit without end would.
MB_BINARY(lshift, Integers, {
  constexpr T width = T(sizeof(T) * 8);
  const bool inside = y >= T(0) && y < width;
  return inside ? T(std::make_unsigned_t<T>(x) << (inside ? y : T(0))) : T(0);
})
MB_BINARY(rshift, Integers, {
  constexpr T most = T(sizeof(T) * 8 - std::is_signed_v<T>);
  const bool inside = y >= T(0) && y < most;
  const T by = inside ? y : most;
  return std::is_signed_v<T> || inside ? T(x >> by) : T(0);
})

MB_BINARY(logical_and, Everything, return convert<bool>(x) && convert<bool>(y);)
MB_BINARY(logical_or, Everything, return convert<bool>(x) || convert<bool>(y);)
MB_BINARY(logical_xor, Everything, return convert<bool>(x) != convert<bool>(y);)

template <class T>
MB_DEVICE T divisor_of(T x, T y) {
  using U = std::make_unsigned_t<T>;
  U a = x < 0 ? U(0) - U(x) : U(x);
  U b = y < 0 ? U(0) - U(y) : U(y);
  while (b != 0) {
    const U rest = U(a % b);
    a = b;
    b = rest;
  }
  return T(a);
}

MB_BINARY(gcd, Integers, return divisor_of(x, y);)
MB_BINARY(lcm, Integers, {
  const T divisor = divisor_of(x, y);
  const T product = divisor == 0 ? T(0) : T(x / divisor * y);
  return T(product < 0 ? -product : product);
})

}  // namespace
}  // namespace mybackend::kernels
