// nvcc's half of tile.h, and the N-thread build's.
#pragma once

#include <cstring>

namespace mybackend::device {

constexpr int64_t kPointwiseBlock = kElementsPerBlock;

// Conversions between T and any stored type are functions that are called, not inlined: a pointwise kernel would
// otherwise hold one copy of them for each operand.
template <class T>
MB_DEVICE_NOINLINE T fetch_converted(const char* at, DType dtype) {
  switch (dtype) {
#define MB_FETCH(name, type) \
  case DType::name:          \
    return convert<T>(*reinterpret_cast<const type*>(at));
    MB_FETCH(UInt8, uint8_t)
    MB_FETCH(Int8, int8_t)
    MB_FETCH(Int16, int16_t)
    MB_FETCH(Int32, int32_t)
    MB_FETCH(Int64, int64_t)
    MB_FETCH(Half, half)
    MB_FETCH(Float, float)
    MB_FETCH(Double, double)
    MB_FETCH(ComplexHalf, complex<half>)
    MB_FETCH(ComplexFloat, complex<float>)
    MB_FETCH(ComplexDouble, complex<double>)
    MB_FETCH(Bool, bool)
    MB_FETCH(BFloat16, bfloat16)
    MB_FETCH(UInt16, uint16_t)
    MB_FETCH(UInt32, uint32_t)
    MB_FETCH(UInt64, uint64_t)
#undef MB_FETCH
  }
  return T();
}

template <class T>
MB_DEVICE_NOINLINE void put_converted(char* at, T value, DType dtype) {
  switch (dtype) {
#define MB_PUT(name, type)                               \
  case DType::name:                                      \
    *reinterpret_cast<type*>(at) = convert<type>(value); \
    return;
    MB_PUT(UInt8, uint8_t)
    MB_PUT(Int8, int8_t)
    MB_PUT(Int16, int16_t)
    MB_PUT(Int32, int32_t)
    MB_PUT(Int64, int64_t)
    MB_PUT(Half, half)
    MB_PUT(Float, float)
    MB_PUT(Double, double)
    MB_PUT(ComplexHalf, complex<half>)
    MB_PUT(ComplexFloat, complex<float>)
    MB_PUT(ComplexDouble, complex<double>)
    MB_PUT(Bool, bool)
    MB_PUT(BFloat16, bfloat16)
    MB_PUT(UInt16, uint16_t)
    MB_PUT(UInt32, uint32_t)
    MB_PUT(UInt64, uint64_t)
#undef MB_PUT
  }
}

// One element of stored type `dtype`, as T.
template <class T>
MB_DEVICE T fetch(const char* at, DType dtype) {
  return dtype == dtype_of<T> ? *reinterpret_cast<const T*>(at) : fetch_converted<T>(at, dtype);
}

template <class T>
MB_DEVICE void put(char* at, T value, DType dtype) {
  if (dtype == dtype_of<T>) {
    *reinterpret_cast<T*>(at) = value;
  } else {
    put_converted<T>(at, value, dtype);
  }
}

// Byte offsets of element `position` in every operand. 64-bit division is slow, so positions that fit in 32 bits are
// divided as such.
template <int N>
struct Offsets {
  int64_t at[N];
  MB_DEVICE Offsets(const Operands<N>& o, int64_t position) {
    const bool narrow = o.numel <= int64_t(0x7fffffff);
#pragma unroll
    for (int k = 0; k < N; k++) at[k] = 0;
    for (int d = 0; d < o.ndim; d++) {
      const int64_t size = o.sizes[d];
      const int64_t quotient = narrow ? int64_t(uint32_t(position) / uint32_t(size)) : position / size;
      const int64_t index = position - quotient * size;
      position = quotient;
#pragma unroll
      for (int k = 0; k < N; k++) at[k] += index * o.strides[k][d];
    }
  }
};

template <class T, int N>
MB_DEVICE T read_element(const Operands<N>& o, int k, int64_t offset) {
  return fetch<T>(o.data[k] == nullptr ? o.immediate[k] : o.data[k] + offset, o.dtype[k]);
}

template <bool Indexed, class Out, class... In>
struct CallWith {
  template <class F>
  MB_DEVICE static Out call(const F& f, int64_t position, In... in) {
    if constexpr (Indexed) {
      return f(position, in...);
    } else {
      return f(in...);
    }
  }
};

template <bool Indexed, class Out, class... In, size_t... I, class F>
MB_DEVICE void one_by_one(Block block, const Operands<1 + sizeof...(In)>& o, const F& f, int64_t begin, int64_t end,
                          std::index_sequence<I...>) {
  for (int64_t p = begin + block.thread; p < end; p += block.threads) {
    const Offsets<1 + sizeof...(In)> offset(o, p);
    put<Out>(o.data[0] + offset.at[0],
             CallWith<Indexed, Out, In...>::call(f, p, read_element<In>(o, I + 1, offset.at[I + 1])...), o.dtype[0]);
  }
}

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T value[V];
};

// All operands contiguous, the output stored as StoreOut and every input as StoreIn (or a scalar).
template <bool Indexed, class Out, class... In>
struct Packed {
  template <class StoreOut, class... StoreIn, size_t... I, class F>
  MB_DEVICE static void run(Block block, const Operands<1 + sizeof...(In)>& o, const F& f, int64_t begin, int64_t end,
                            std::index_sequence<I...>, Type<StoreOut>, Type<StoreIn>...) {
    constexpr int kWidest = int(sizeof(StoreOut) > 0 ? sizeof(StoreOut) : 1);
    constexpr int V = kWidest >= 16 ? 1 : (16 / kWidest > 8 ? 8 : 16 / kWidest);
    for (int64_t p = begin + int64_t(block.thread) * V; p < end; p += int64_t(block.threads) * V) {
      if (p + V <= end) {
        Pack<StoreOut, V> out;
        auto load = [&](auto type, int k) {
          using S = typename decltype(type)::type;
          return *reinterpret_cast<const Pack<S, V>*>(o.data[k] + p * int64_t(sizeof(S)));
        };
        auto apply = [&](const Pack<StoreIn, V>&... in) {
#pragma unroll
          for (int v = 0; v < V; v++)
            out.value[v] =
                convert<StoreOut>(CallWith<Indexed, Out, In...>::call(f, p + v, convert<In>(in.value[v])...));
        };
        apply(load(Type<StoreIn>{}, int(I) + 1)...);
        *reinterpret_cast<Pack<StoreOut, V>*>(o.data[0] + p * int64_t(sizeof(StoreOut))) = out;
      } else {
        for (int64_t q = p; q < end; q++)
          reinterpret_cast<StoreOut*>(o.data[0])[q] = convert<StoreOut>(CallWith<Indexed, Out, In...>::call(
              f, q, convert<In>(reinterpret_cast<const StoreIn*>(o.data[I + 1])[q])...));
      }
    }
  }
};

template <class T>
MB_DEVICE bool packable(const char* data) {
  return data != nullptr && reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

template <bool Indexed, class Out, class... In, size_t... I, class F>
MB_DEVICE void choose(Block block, const Operands<1 + sizeof...(In)>& o, const F& f, int64_t begin, int64_t end,
                      std::index_sequence<I...> sequence) {
  bool flat = o.contiguous[0] && packable<Out>(o.data[0]);
  ((flat = flat && o.contiguous[I + 1] && packable<In>(o.data[I + 1])), ...);
  if (flat && o.dtype[0] == dtype_of<Out> && ((o.dtype[I + 1] == dtype_of<In>) && ...))
    return Packed<Indexed, Out, In...>::run(block, o, f, begin, end, sequence, Type<Out>{}, Type<In>{}...);
  if constexpr (std::is_same_v<Out, float> && (std::is_same_v<In, float> && ...)) {
    if (flat && o.dtype[0] == DType::Half && ((o.dtype[I + 1] == DType::Half) && ...))
      return Packed<Indexed, Out, In...>::run(block, o, f, begin, end, sequence, Type<half>{},
                                              Type<std::conditional_t<true, half, In>>{}...);
    if (flat && o.dtype[0] == DType::BFloat16 && ((o.dtype[I + 1] == DType::BFloat16) && ...))
      return Packed<Indexed, Out, In...>::run(block, o, f, begin, end, sequence, Type<bfloat16>{},
                                              Type<std::conditional_t<true, bfloat16, In>>{}...);
  }
  one_by_one<Indexed, Out, In...>(block, o, f, begin, end, sequence);
}

template <class T, int N>
MB_DEVICE void store_block(Block block, const Operands<N>& o, const T* values) {
  const int64_t begin = block.index * kElementsPerBlock;
  const int64_t n = kElementsPerBlock < o.numel - begin ? kElementsPerBlock : o.numel - begin;
  for (int64_t i = block.thread; i < n; i += block.threads) {
    const Offsets<N> offset(o, begin + i);
    put<T>(o.data[0] + offset.at[0], values[i], o.dtype[0]);
  }
}

template <bool Indexed, class Out, class... In, class F>
MB_DEVICE void each_in_block(Block block, const Operands<1 + sizeof...(In)>& o, const F& f) {
  const int64_t begin = block.index * kPointwiseBlock;
  const int64_t end = begin + kPointwiseBlock < o.numel ? begin + kPointwiseBlock : o.numel;
  choose<Indexed, Out, In...>(block, o, f, begin, end, std::index_sequence_for<In...>{});
}

}  // namespace mybackend::device
