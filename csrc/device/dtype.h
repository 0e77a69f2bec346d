// DType: the element types kernels know, numbered as c10::ScalarType, and the visitors that turn one into a C++ type.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/complex.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace mybackend {

using half = c10::Half;
using bfloat16 = c10::BFloat16;
template <class T>
using complex = c10::complex<T>;

enum class DType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  ComplexHalf = 8,
  ComplexFloat = 9,
  ComplexDouble = 10,
  Bool = 11,
  BFloat16 = 15,
  UInt16 = 27,
  UInt32 = 28,
  UInt64 = 29,
};

template <class T>
struct Type {
  using type = T;
};

template <class... Ts>
struct Types {};

template <class... Lists>
struct JoinTypes;
template <class... A>
struct JoinTypes<Types<A...>> {
  using type = Types<A...>;
};
template <class... A, class... B, class... Rest>
struct JoinTypes<Types<A...>, Types<B...>, Rest...> {
  using type = typename JoinTypes<Types<A..., B...>, Rest...>::type;
};
template <class... Lists>
using Join = typename JoinTypes<Lists...>::type;

using Integers = Types<uint8_t, int8_t, int16_t, int32_t, int64_t>;
using Booleans = Types<bool>;
using Floats = Types<float, double>;   // what half and bfloat16 are computed in, and double
using Halves = Types<half, bfloat16>;  // storage only
using Complexes = Types<complex<float>, complex<double>>;
using Unsigneds = Types<uint16_t, uint32_t, uint64_t>;

// DTypeOf<T>::value is the DType of T.
template <class T>
struct DTypeOf;
#define MB_DTYPE_OF(type, name)                 \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  }
MB_DTYPE_OF(uint8_t, UInt8);
MB_DTYPE_OF(int8_t, Int8);
MB_DTYPE_OF(int16_t, Int16);
MB_DTYPE_OF(int32_t, Int32);
MB_DTYPE_OF(int64_t, Int64);
MB_DTYPE_OF(half, Half);
MB_DTYPE_OF(float, Float);
MB_DTYPE_OF(double, Double);
MB_DTYPE_OF(complex<half>, ComplexHalf);
MB_DTYPE_OF(complex<float>, ComplexFloat);
MB_DTYPE_OF(complex<double>, ComplexDouble);
MB_DTYPE_OF(bool, Bool);
MB_DTYPE_OF(bfloat16, BFloat16);
MB_DTYPE_OF(uint16_t, UInt16);
MB_DTYPE_OF(uint32_t, UInt32);
MB_DTYPE_OF(uint64_t, UInt64);
#undef MB_DTYPE_OF

template <class T>
constexpr DType dtype_of = DTypeOf<T>::value;

// The type arithmetic on T is done in: half and bfloat16 in float, everything else in itself.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<half> {
  using type = float;
};
template <>
struct ComputeOf<bfloat16> {
  using type = float;
};
template <>
struct ComputeOf<complex<half>> {
  using type = complex<float>;
};
template <class T>
using Compute = typename ComputeOf<T>::type;

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<complex<T>> = true;
template <class T>
constexpr bool is_floating = std::is_floating_point_v<T> || std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// float for complex<float>, T itself for anything real.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<complex<T>> {
  using type = T;
};
template <class T>
using Real = typename RealOf<T>::type;

constexpr DType compute_dtype(DType dtype) {
  switch (dtype) {
    case DType::Half:
    case DType::BFloat16:
      return DType::Float;
    case DType::ComplexHalf:
      return DType::ComplexFloat;
    default:
      return dtype;
  }
}

constexpr int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Bool:
      return 1;
    case DType::Int16:
    case DType::UInt16:
    case DType::Half:
    case DType::BFloat16:
      return 2;
    case DType::Int32:
    case DType::UInt32:
    case DType::Float:
    case DType::ComplexHalf:
      return 4;
    case DType::ComplexDouble:
      return 16;
    default:
      return 8;
  }
}

// The name upstream prints in "not implemented for '...'".
constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
      return "Byte";
    case DType::Int8:
      return "Char";
    case DType::Int16:
      return "Short";
    case DType::Int32:
      return "Int";
    case DType::Int64:
      return "Long";
    case DType::Half:
      return "Half";
    case DType::Float:
      return "Float";
    case DType::Double:
      return "Double";
    case DType::ComplexHalf:
      return "ComplexHalf";
    case DType::ComplexFloat:
      return "ComplexFloat";
    case DType::ComplexDouble:
      return "ComplexDouble";
    case DType::Bool:
      return "Bool";
    case DType::BFloat16:
      return "BFloat16";
    case DType::UInt16:
      return "UInt16";
    case DType::UInt32:
      return "UInt32";
    case DType::UInt64:
      return "UInt64";
  }
  return "Undefined";
}

// Thrown by visit(); exception_translator (kernel.h) turns it into NotImplementedError with this text. Visible, because
// it is thrown in one shared library and caught in another.
class __attribute__((visibility("default"))) DTypeNotImplemented : public std::runtime_error {
 public:
  DTypeNotImplemented(const char* op, DType dtype)
      : std::runtime_error(std::string("\"") + op + "\" not implemented for '" + name_of(dtype) + "'") {}
};

namespace detail {
template <class F, class... Ts>
bool visit_types(Types<Ts...>, DType dtype, F&& f) {
  return ((dtype == dtype_of<Ts> ? (f(Type<Ts>{}), true) : false) || ...);
}
}  // namespace detail

// Calls f(Type<T>{}) with the T of `List` whose DType is `dtype`; throws DTypeNotImplemented when there is none. Pass
// compute_dtype(dtype) to see half and bfloat16 as float.
template <class List, class F>
void visit(DType dtype, const char* op, F&& f) {
  if (!detail::visit_types(List{}, dtype, f)) throw DTypeNotImplemented(op, dtype);
}

}  // namespace mybackend
