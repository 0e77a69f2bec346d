// Arithmetic of two operands over lists of tensors: with another list, with a number for each tensor, with one element
// on the device. Called by csrc/aten/foreach.cpp. Spec: test/ops/test_foreach.py.
#include "csrc/kernels/foreach.h"
#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

using Anything = Join<Floats, Integers, Complexes>;

using Continuous = Join<Floats, Complexes>;

template <Binary op, class T>
MB_DEVICE T value_of(T a, T b) {
  if constexpr (op == Binary::Add) return T(a + b);
  if constexpr (op == Binary::Sub) return T(a - b);
  if constexpr (op == Binary::Mul) return T(a * b);
  if constexpr (op == Binary::Div) return T(a / b);
  if constexpr (op == Binary::Maximum) return a != a || a > b ? a : b;
  if constexpr (op == Binary::Minimum) return a != a || a < b ? a : b;
  if constexpr (op == Binary::Pow) return math::pow(a, b);
  if constexpr (op == Binary::ReversePow) return math::pow(b, a);
}

template <Binary op, class T>
struct WithList {
  MB_DEVICE void operator()(T (&v)[3]) const { v[0] = value_of<op>(v[1], v[2]); }
  MB_DEVICE void operator()(Block block, const Span<3>& span, NoExtra) const {
    device::each_in_span<0b110, 0b001, T>(block, span, *this);
  }
};

template <Binary op, class T>
struct WithScaledList {
  T alpha;
  MB_DEVICE void operator()(T (&v)[3]) const { v[0] = value_of<op>(v[1], T(alpha * v[2])); }
  MB_DEVICE void operator()(Block block, const Span<3>& span, NoExtra) const {
    device::each_in_span<0b110, 0b001, T>(block, span, *this);
  }
};

template <Binary op, class T>
struct WithNumber {
  T number;
  MB_DEVICE void operator()(T (&v)[2]) const { v[0] = value_of<op>(v[1], number); }
};

template <Binary op, class T>
struct WithNumberEach {
  MB_DEVICE void operator()(Block block, const Span<2>& span, T number) const {
    device::each_in_span<0b10, 0b01, T>(block, span, WithNumber<op, T>{number});
  }
};

template <Binary op, class T>
struct WithElement {
  const void* element;
  T factor;
  MB_DEVICE void operator()(Block block, const Span<2>& span, NoExtra) const {
    const T number = T(factor * device::load_one<T>(element, span.dtype[1]));
    device::each_in_span<0b10, 0b01, T>(block, span, WithNumber<op, T>{number});
  }
};

template <Binary op, class List>
void with_list(Stream stream, const TensorLists& lists, const Number& alpha) {
  visit<List>(compute_dtype(lists.dtype[0]), "foreach_binary_op_list", [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (op == Binary::Add || op == Binary::Sub) {
      if (alpha.to<T>() != T(1))
        return multi_tensor<3>(stream, lists, kPointwiseChunk, WithScaledList<op, T>{alpha.to<T>()});
    }
    multi_tensor<3>(stream, lists, kPointwiseChunk, WithList<op, T>{});
  });
}

template <Binary op, class List>
void with_numbers(Stream stream, const TensorLists& lists, const Numbers& numbers) {
  visit<List>(compute_dtype(lists.dtype[0]), "foreach_binary_op_scalar", [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (op == Binary::Add || op == Binary::Mul || op == Binary::Div) {
      if (numbers.element != nullptr)
        return multi_tensor<2>(stream, lists, kPointwiseChunk,
                               WithElement<op, T>{numbers.element, numbers.same.to<T>()});
    }
    multi_tensor<2, T>(stream, lists, kPointwiseChunk, WithNumberEach<op, T>{}, [&](int64_t t) {
      return numbers.each != nullptr ? numbers.each[t].to<T>() : numbers.same.to<T>();
    });
  });
}

}  // namespace

MB_DEFINE_KERNEL(foreach_binary_list, (Stream stream, const TensorLists& lists, Binary op, const Number& alpha)) {
  switch (op) {
    case Binary::Add:
      return with_list<Binary::Add, Anything>(stream, lists, alpha);
    case Binary::Sub:
      return with_list<Binary::Sub, Anything>(stream, lists, alpha);
    case Binary::Mul:
      return with_list<Binary::Mul, Anything>(stream, lists, alpha);
    case Binary::Div:
      return with_list<Binary::Div, Continuous>(stream, lists, alpha);
    case Binary::Maximum:
      return with_list<Binary::Maximum, Floats>(stream, lists, alpha);
    case Binary::Minimum:
      return with_list<Binary::Minimum, Floats>(stream, lists, alpha);
    case Binary::Pow:
    case Binary::ReversePow:
      return with_list<Binary::Pow, Floats>(stream, lists, alpha);
  }
}

MB_DEFINE_KERNEL(foreach_binary_numbers, (Stream stream, const TensorLists& lists, Binary op, const Numbers& numbers)) {
  switch (op) {
    case Binary::Add:
      return with_numbers<Binary::Add, Anything>(stream, lists, numbers);
    case Binary::Sub:
      return with_numbers<Binary::Sub, Anything>(stream, lists, numbers);
    case Binary::Mul:
      return with_numbers<Binary::Mul, Anything>(stream, lists, numbers);
    case Binary::Div:
      return with_numbers<Binary::Div, Continuous>(stream, lists, numbers);
    case Binary::Maximum:
      return with_numbers<Binary::Maximum, Floats>(stream, lists, numbers);
    case Binary::Minimum:
      return with_numbers<Binary::Minimum, Floats>(stream, lists, numbers);
    case Binary::Pow:
      return with_numbers<Binary::Pow, Floats>(stream, lists, numbers);
    case Binary::ReversePow:
      return with_numbers<Binary::ReversePow, Floats>(stream, lists, numbers);
  }
}

}  // namespace mybackend::kernels
