// addcmul, addcdiv, lerp, copies and zeros over lists of tensors. Called by csrc/aten/foreach.cpp.
// Spec: test/ops/test_foreach.py.
#include "csrc/kernels/foreach.h"
#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

using Continuous = Join<Floats, Complexes>;

template <class T>
struct AddProduct {
  T number;
  MB_DEVICE void operator()(T (&v)[4]) const { v[0] = v[1] + number * (v[2] * v[3]); }
};

template <class T>
struct AddQuotient {
  T number;
  MB_DEVICE void operator()(T (&v)[4]) const { v[0] = v[1] + number * (v[2] / v[3]); }
};

// From whichever end is nearer, so that weight 1 gives the end exactly.
template <class T>
MB_DEVICE T lerp(T start, T end, T weight) {
  const T way = end - start;
  return math::fabs(weight) < T(0.5) ? start + weight * way : end - way * (T(1) - weight);
}

template <class T>
struct LerpBy {
  T number;
  MB_DEVICE void operator()(T (&v)[3]) const { v[0] = lerp(v[1], v[2], number); }
};

template <class T>
struct LerpByList {
  MB_DEVICE void operator()(T (&v)[4]) const { v[0] = lerp(v[1], v[2], v[3]); }
  MB_DEVICE void operator()(Block block, const Span<4>& span, NoExtra) const {
    device::each_in_span<0b1110, 0b0001, T>(block, span, *this);
  }
};

// Gives `F` the number that goes with the tensor.
template <template <class> class F, class T, int N>
struct ByNumber {
  MB_DEVICE void operator()(Block block, const Span<N>& span, T number) const {
    device::each_in_span<(1u << N) - 2, 1u, T>(block, span, F<T>{number});
  }
};

template <template <class> class F, int N, class List>
void by_numbers(Stream stream, const TensorLists& lists, const Numbers& numbers, const char* name) {
  visit<List>(compute_dtype(lists.dtype[0]), name, [&](auto type) {
    using T = typename decltype(type)::type;
    multi_tensor<N, T>(stream, lists, kPointwiseChunk, ByNumber<F, T, N>{}, [&](int64_t t) {
      return numbers.each != nullptr ? numbers.each[t].to<T>() : numbers.same.to<T>();
    });
  });
}

template <class T>
struct Copy {
  MB_DEVICE void operator()(T (&v)[2]) const { v[0] = v[1]; }
  MB_DEVICE void operator()(Block block, const Span<2>& span, NoExtra) const {
    device::each_in_span<0b10, 0b01, T>(block, span, *this);
  }
};

template <class T>
struct Zero {
  MB_DEVICE void operator()(T (&v)[1]) const { v[0] = T(0); }
  MB_DEVICE void operator()(Block block, const Span<1>& span, NoExtra) const {
    device::each_in_span<0, 1, T>(block, span, *this);
  }
};

// Elements of one size are moved without regard to what they are.
DType word_of(DType dtype) {
  switch (size_of(dtype)) {
    case 1:
      return DType::UInt8;
    case 2:
      return DType::UInt16;
    case 4:
      return DType::UInt32;
    case 8:
      return DType::UInt64;
    default:
      return DType::ComplexDouble;
  }
}
using Words = Types<uint8_t, uint16_t, uint32_t, uint64_t, complex<double>>;

}  // namespace

MB_DEFINE_KERNEL(foreach_ternary_numbers,
                 (Stream stream, const TensorLists& lists, Ternary op, const Numbers& numbers)) {
  switch (op) {
    case Ternary::Addcmul:
      return by_numbers<AddProduct, 4, Continuous>(stream, lists, numbers, "foreach_pointwise_op");
    case Ternary::Addcdiv:
      return by_numbers<AddQuotient, 4, Continuous>(stream, lists, numbers, "foreach_pointwise_op");
    case Ternary::Lerp:
      return by_numbers<LerpBy, 3, Floats>(stream, lists, numbers, "foreach_tensor_lerp");
  }
}

MB_DEFINE_KERNEL(foreach_lerp_list, (Stream stream, const TensorLists& lists)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "foreach_tensor_lerp", [&](auto type) {
    using T = typename decltype(type)::type;
    multi_tensor<4>(stream, lists, kPointwiseChunk, LerpByList<T>{});
  });
}

MB_DEFINE_KERNEL(foreach_copy, (Stream stream, const TensorLists& lists)) {
  if (lists.dtype[0] == lists.dtype[1]) {
    TensorLists words = lists;
    words.dtype[0] = words.dtype[1] = word_of(lists.dtype[0]);
    return visit<Words>(words.dtype[0], "foreach_tensor_copy", [&](auto type) {
      multi_tensor<2>(stream, words, kPointwiseChunk, Copy<typename decltype(type)::type>{});
    });
  }
  using Everything = Join<Floats, Integers, Booleans, Complexes, Unsigneds>;
  visit<Everything>(compute_dtype(lists.dtype[1]), "foreach_tensor_copy", [&](auto type) {
    multi_tensor<2>(stream, lists, kPointwiseChunk, Copy<typename decltype(type)::type>{});
  });
}

MB_DEFINE_KERNEL(foreach_zero, (Stream stream, const TensorLists& lists)) {
  TensorLists words = lists;
  words.dtype[0] = word_of(lists.dtype[0]);
  visit<Words>(words.dtype[0], "foreach_zero_", [&](auto type) {
    multi_tensor<1>(stream, words, kPointwiseChunk, Zero<typename decltype(type)::type>{});
  });
}

}  // namespace mybackend::kernels
