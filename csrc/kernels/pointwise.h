// Words for tables of elementwise kernels: one entry of a table is a name, the types it computes in and its formula.
//
//   MB_UNARY(exp, FloatsAndComplexes, return math::exp(x);)
//   MB_BINARY(mul, Arithmetic, return T(x * y);)
//   MB_TERNARY(...)                                               x, y, z
//
// defines the entry point `exp`, out = formula(x). T is the type computed in; the type returned is what the output is
// converted from. A formula with parameters is a functor struct instead, launched with unary/binary/ternary.
// Formulas choose with `?:` between computed values where they can, so that the host's loops vectorise.
#pragma once

#include "csrc/device/complex_math.h"
#include "csrc/device/kernel.h"
#include "csrc/device/number.h"
#include "csrc/device/tile.h"

namespace mybackend::kernels {
using device::Stream;

using FloatsAndComplexes = Join<Floats, Complexes>;
using Reals = Join<Floats, Integers>;
using RealsAndBool = Join<Floats, Integers, Booleans>;
using Arithmetic = Join<Floats, Integers, Complexes>;
using Bits = Join<Integers, Booleans>;
using Everything = Join<Floats, Integers, Booleans, Complexes>;

// Calls f(Type<T>{}) with the T that an operation over these operands computes in.
template <class List, int N, class F>
void visit_compute(const Operands<N>& o, const char* name, F f) {
  visit<List>(compute_dtype(o.compute), name, f);
}

template <class T, class F>
void unary(Stream stream, const Operands<2>& o, F f) {
  device::pointwise<decltype(f(T())), T>(stream, o, f);
}

template <class T, class F>
void binary(Stream stream, const Operands<3>& o, F f) {
  device::pointwise<decltype(f(T(), T())), T, T>(stream, o, f);
}

template <class T, class F>
void ternary(Stream stream, const Operands<4>& o, F f) {
  device::pointwise<decltype(f(T(), T(), T())), T, T, T>(stream, o, f);
}

}  // namespace mybackend::kernels

#define MB_FORMULA(launcher, count, name, parameters, types, ...)                                                   \
  struct name##_formula {                                                                                           \
    template <class T>                                                                                              \
    MB_DEVICE auto operator() parameters const {                                                                    \
      __VA_ARGS__                                                                                                   \
    }                                                                                                               \
  };                                                                                                                \
  MB_DEFINE_KERNEL(name, (Stream stream, const Operands<count>& o)) {                                               \
    visit_compute<types>(o, #name,                                                                                  \
                         [&](auto type) { launcher<typename decltype(type)::type>(stream, o, name##_formula{}); }); \
  }
#define MB_UNARY(name, types, ...) MB_FORMULA(unary, 2, name, (T x), types, __VA_ARGS__)
#define MB_BINARY(name, types, ...) MB_FORMULA(binary, 3, name, (T x, [[maybe_unused]] T y), types, __VA_ARGS__)
#define MB_TERNARY(name, types, ...) MB_FORMULA(ternary, 4, name, (T x, T y, T z), types, __VA_ARGS__)
