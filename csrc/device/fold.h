// What reductions are made of: reading the elements of a reduction, folding rows, folding columns, storing results.
//
//   fold<T>(block, n, identity, op, f)   one collective: op over f(0..n)
//   fold_first(block, n, f)              the first position at which f is true
//   RowReader<T, Stored>                 x = reader.read(reduction, base, position, n): x[i] is element `position + i`
//   fold_columns(...)                    many results side by side, each over its own column
//   visit_stored<T>(dtype, f)            which `Stored` types a kernel has to be compiled for
//   visit_folded<T>(dtype, f)            the same for reductions
//
//   C++ compiler, one thread    rows as vectors of accumulators, elements converted a chunk at a time; columns as
//   arrays of
//                               accumulators, row after row
//   nvcc, or N threads          elements read and converted one by one, columns one to a thread
#pragma once

#include <limits>

#include "csrc/device/reduction.h"
#include "csrc/device/tile.h"

namespace mybackend::device {

struct Add {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return T(a + b);
  }
};
struct Multiply {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return T(a * b);
  }
};
struct Or {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
// NaN wins. One comparison a step: that is what vectorises.
struct Larger {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;
  }
};
struct Smaller {
  template <class T>
  MB_DEVICE T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};

template <class T>
MB_DEVICE constexpr T lowest_of() {
  return std::numeric_limits<T>::has_infinity ? T(-std::numeric_limits<T>::infinity())
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
MB_DEVICE constexpr T highest_of() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

// Accumulators of one type, stored member by member so that loops over them vectorise.
template <class A>
struct One {
  A a;
};
template <class A, class B>
struct Two {
  A a;
  B b;
};
template <class A, class B, class C>
struct Three {
  A a;
  B b;
  C c;
};

// Folds one accumulator after the other with a short chain at each of three levels, so that the rounding error of a sum
// does not grow with their number.
template <class Op>
class Cascade {
 public:
  MB_DEVICE explicit Cascade(const Op& op) : op_(op), low_(op.identity()), middle_(low_), high_(low_) {}

  MB_DEVICE void add(typename Op::Acc x) {
    low_ = op_.combine(low_, x);
    if (++count_ % kChain != 0) return;
    middle_ = op_.combine(middle_, low_);
    low_ = op_.identity();
    if (count_ % (kChain * kChain) != 0) return;
    high_ = op_.combine(high_, middle_);
    middle_ = op_.identity();
  }
  MB_DEVICE typename Op::Acc total() const { return op_.combine(high_, op_.combine(middle_, low_)); }

 private:
  static constexpr int64_t kChain = 32;
  const Op& op_;
  typename Op::Acc low_, middle_, high_;
  int64_t count_ = 0;
};

// Byte offset of element `index` of `dims` dimensions.
MB_DEVICE int64_t offset_of(int64_t index, int dims, const int64_t* sizes, const int64_t* strides) {
  if (dims <= 1) return dims == 0 ? 0 : index * strides[0];
  int64_t offset = 0;
  for (int d = 0; d + 1 < dims; d++) {
    const int64_t outer = index / sizes[d];
    offset += (index - outer * sizes[d]) * strides[d];
    index = outer;
  }
  return offset + index * strides[dims - 1];
}

}  // namespace mybackend::device

#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
#include "csrc/device/fold_threads.h"
#else
#include "csrc/device/fold_host.h"
#endif

namespace mybackend::device {

template <class T>
MB_DEVICE void store_one(char* to, T value, DType dtype) {
  if (dtype == dtype_of<T>) {
    *reinterpret_cast<T*>(to) = value;
    return;
  }
#if defined(__CUDACC__) || defined(MB_TEST_THREADS)
  put<T>(to, value, dtype);
#else
  store_row(to, &value, 0, 1, dtype);
#endif
}

}  // namespace mybackend::device
