// FoldOf<In, A, Fn, Term, Finish>: the reductions that store finish(term(x_0) fn term(x_1) fn ...), where fn on A is
// associative and commutative and `start` is its neutral element.
#pragma once

#include "csrc/kernels/reduce.h"

namespace mybackend::kernels {

struct Same {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return x;
  }
};

template <class In, class A, class Fn, class Term = Same, class Finish = Same>
struct FoldOf {
  using Input = In;
  using Acc = device::One<A>;
  static constexpr bool positions = false;
  A start;
  Fn fn{};
  Term of{};
  Finish finish{};

  MB_DEVICE Acc identity() const { return {start}; }
  MB_DEVICE Acc combine(Acc x, Acc y) const { return {fn(x.a, y.a)}; }
  MB_DEVICE Acc term(In x, int64_t) const { return {A(of(x))}; }
  MB_DEVICE Acc quad(In x0, In x1, In x2, In x3, int64_t) const {
    return {fn(fn(A(of(x0)), A(of(x1))), fn(A(of(x2)), A(of(x3))))};
  }
  template <class X>
  MB_DEVICE Acc absorb(Block block, Acc acc, int64_t n, int64_t, X x) const {
    const Term f = of;
    return {fn(acc.a, device::fold<A, device::kSpread<X>>(block, n, start, fn, [=](int64_t i) { return A(f(x[i])); }))};
  }
  MB_DEVICE void store(const Reduction& r, char* out, char*, Acc acc) const {
    device::store_one(out, finish(acc.a), r.out_dtype[0]);
  }
};

template <class In, class A, class Term = Same, class Finish = Same>
using SumOf = FoldOf<In, A, device::Add, Term, Finish>;

}  // namespace mybackend::kernels
