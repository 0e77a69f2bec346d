// copy: out = convert(in) for any strides and dtypes. fill: out = scalar.
//
// Three cases: elements of one dtype move as opaque words of their size; a transposed pair of inner dimensions moves in
// square tiles through shared memory, so that both sides are read and written along their fast dimension; everything
// else is a pointwise identity in the source's compute type, whose store converts. Called by csrc/aten/copy.cpp. Spec:
// test/ops/test_copy.py.
#include "csrc/kernels/copy.h"

#include "csrc/device/tile.h"

namespace mybackend::kernels {
namespace {

using device::Block;

struct Identity {
  template <class T>
  MB_DEVICE T operator()(T x) const {
    return x;
  }
};

// Of contiguous elements that are stored as they are computed in: the store converts them from where they lie.
template <class T>
struct Convert {
  Operands<2> o;
  MB_DEVICE void operator()(Block block) const {
    device::store_block<T>(block, o, reinterpret_cast<const T*>(o.data[1]) + block.index * device::kElementsPerBlock);
  }
};

template <class T>
struct Resolve {
  bool conjugate, negate;
  MB_DEVICE T operator()(T x) const {
    if constexpr (is_complex<T>) {
      if (conjugate) x = T(x.real(), -x.imag());
    }
    return negate ? T(-x) : x;
  }
};

struct Word16 {
  uint64_t low, high;
};

// As large as the 48 KiB of shared memory that every GPU gives a block allow; on the host few pages are touched at a
// time.
template <class W>
constexpr int kSideOf = sizeof(W) == 16  ? 32
                        : sizeof(W) == 2 ? 128
                                         : 64;

// One block moves a kSide x kSide square of the two inner dimensions: `in` is dense along dimension 1, `out` along 0.
template <class W>
struct TransposeSquares {
  Operands<2> o;

  static constexpr int kSide = kSideOf<W>;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, W, square, kSide * (kSide + 1));
    const int64_t across = device::ceil_div(o.sizes[0], kSide), down = device::ceil_div(o.sizes[1], kSide);
    int64_t rest = block.index;
    const int64_t i0 = rest % across * kSide;
    rest /= across;
    const int64_t j0 = rest % down * kSide;
    rest /= down;
    char* out = o.data[0];
    const char* in = o.data[1];
    for (int d = 2; d < o.ndim; d++) {
      const int64_t index = rest % o.sizes[d];
      rest /= o.sizes[d];
      out += index * o.strides[0][d];
      in += index * o.strides[1][d];
    }
    const int64_t width = o.sizes[0] - i0 < kSide ? o.sizes[0] - i0 : kSide;
    const int64_t height = o.sizes[1] - j0 < kSide ? o.sizes[1] - j0 : kSide;
    const char* from = in + i0 * o.strides[1][0] + j0 * int64_t(sizeof(W));
    char* to = out + i0 * int64_t(sizeof(W)) + j0 * o.strides[0][1];
    const int64_t from_step = o.strides[1][0], to_step = o.strides[0][1];
    // square[j][i]: i along dimension 0, j along dimension 1. Stores are spread rather than loads: vector gathers are
    // slow on CPUs that mitigate data sampling.
    block.each2(width, height, [&](int64_t i, int64_t j) {
      square[j * (kSide + 1) + i] = reinterpret_cast<const W*>(from + i * from_step)[j];
    });
    block.sync();
    block.each2(height, width,
                [&](int64_t j, int64_t i) { reinterpret_cast<W*>(to + j * to_step)[i] = square[j * (kSide + 1) + i]; });
  }
};

template <class W>
void move(Stream stream, Operands<2> o) {
  constexpr int64_t size = sizeof(W);
  constexpr int kSide = kSideOf<W>;
  const bool transposed = o.ndim >= 2 && o.strides[0][0] == size && o.strides[1][1] == size &&
                          o.strides[1][0] != size && o.sizes[0] >= kSide / 2 && o.sizes[1] >= kSide / 2;
  if (transposed) {
    int64_t squares = device::ceil_div(o.sizes[0], kSide) * device::ceil_div(o.sizes[1], kSide);
    for (int d = 2; d < o.ndim; d++) squares *= o.sizes[d];
    return device::launch(stream, {squares, 256, kSide * kSide}, TransposeSquares<W>{o});
  }
  if constexpr (sizeof(W) == 16) {
    o.dtype[0] = o.dtype[1] = DType::ComplexDouble;
    device::pointwise<complex<double>, complex<double>>(stream, o, Identity{});
  } else {
    o.dtype[0] = o.dtype[1] = dtype_of<W>;
    device::pointwise<W, W>(stream, o, Identity{});
  }
}

}  // namespace

MB_DEFINE_KERNEL(copy, (Stream stream, const Operands<2>& o, bool conjugate, bool negate)) {
  using Everything = Join<Floats, Integers, Booleans, Complexes, Unsigneds>;
  if (conjugate || negate) {
    return visit<Join<Floats, Integers, Complexes>>(compute_dtype(o.dtype[1]), "copy_", [&](auto type) {
      using T = typename decltype(type)::type;
      device::pointwise<T, T>(stream, o, Resolve<T>{conjugate, negate});
    });
  }
  if (o.dtype[0] != o.dtype[1]) {
    return visit<Everything>(compute_dtype(o.dtype[1]), "copy_", [&](auto type) {
      using T = typename decltype(type)::type;
      if constexpr (!device::kThreadedBlocks) {  // a functor would take the numbers through a buffer
        if (o.contiguous[1] && o.dtype[1] == dtype_of<T>)
          return device::launch(stream, device::pointwise_grid(o.numel), Convert<T>{o});
      }
      device::pointwise<T, T>(stream, o, Identity{});
    });
  }
  switch (size_of(o.dtype[0])) {
    case 1:
      return move<uint8_t>(stream, o);
    case 2:
      return move<uint16_t>(stream, o);
    case 4:
      return move<uint32_t>(stream, o);
    case 8:
      return move<uint64_t>(stream, o);
    default:
      return move<Word16>(stream, o);
  }
}

// The value is stored as the output's type, so it moves as a word like any copy.
MB_DEFINE_KERNEL(fill, (Stream stream, const Operands<2>& o)) {
  using Everything = Join<Floats, Integers, Booleans, Complexes, Unsigneds>;
  if (o.dtype[0] == o.dtype[1] && size_of(o.dtype[0]) <= 2) {
    Operands<2> words = o;
    words.dtype[0] = words.dtype[1] = size_of(o.dtype[0]) == 2 ? DType::UInt16 : DType::UInt8;
    return size_of(o.dtype[0]) == 2 ? device::pointwise<uint16_t, uint16_t>(stream, words, Identity{})
                                    : device::pointwise<uint8_t, uint8_t>(stream, words, Identity{});
  }
  visit<Everything>(compute_dtype(o.dtype[0]), "fill_", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise<T, T>(stream, o, Identity{});
  });
}

}  // namespace mybackend::kernels
