// Included first into every kernel that is built with MB_TEST_THREADS: visit() with a few of the types, to compile
// sooner. What the sanitizers look for, races and accesses out of bounds, is in code that is the same for all.
#pragma once

#define visit visit_all
#include "csrc/device/dtype.h"
#undef visit

namespace mybackend {

template <class T, class... Some>
constexpr bool is_one_of = (std::is_same_v<T, Some> || ...);
template <class T>
constexpr bool is_compiled = is_one_of<T, bool, uint8_t, int32_t, int64_t, float, double>;

template <class List, class F>
void visit(DType dtype, const char* op, F&& f) {
  const auto visit_one = [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_compiled<T>) {
      if (dtype == dtype_of<T>) f(type);
      return dtype == dtype_of<T>;
    }
    return false;
  };
  const bool found = [&]<class... Ts>(Types<Ts...>) { return (visit_one(Type<Ts>{}) || ...); }(List{});
  if (!found) throw DTypeNotImplemented(op, dtype);
}

}  // namespace mybackend
