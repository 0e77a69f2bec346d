// What the gather and scatter kernels share: from a row or position of IndexOperands to addresses.
#pragma once

#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/kernels/index.h"

namespace mybackend::kernels {

using device::Block;

// An element that is only moved.
struct Word16 {
  uint64_t low, high;
};

template <class I>
constexpr int64_t kLargest = sizeof(I) == 4 ? 0x7fffffff : 0x7fffffffffffffff;

// Addresses at the beginning of a row: every dimension but some inner ones has been followed. N is 1 where there is one
// index array, else kMaxIndices.
template <int N>
struct Place {
  char* to;
  const char* from;
  const char* index[N];

  MB_DEVICE static int count(const IndexOperands& o) { return N == 1 ? 1 : o.count; }

  MB_DEVICE static Place origin(const IndexOperands& o) {
    Place place;
    place.to = o.to;
    place.from = o.from == nullptr ? o.immediate : o.from;
    for (int k = 0; k < count(o); k++) place.index[k] = o.index[k];
    return place;
  }

  MB_DEVICE void step(const IndexOperands& o, int d, int64_t i) {
    to += i * o.to_strides[d];
    from += i * o.from_strides[d];
    for (int k = 0; k < count(o); k++) index[k] += i * o.index_strides[k][d];
  }

  // Follows dimensions [begin, end) to the element with number `position` among them.
  MB_DEVICE void follow(const IndexOperands& o, int begin, int end, int64_t position) {
    for (int d = begin; d < end; d++) {
      if (d == end - 1) {
        step(o, d, position);
      } else if (position <= 0xffffffff && o.sizes[d] <= 0xffffffff) {
        const uint32_t size = uint32_t(o.sizes[d]), p = uint32_t(position);
        step(o, d, p % size);
        position = p / size;
      } else {
        step(o, d, position % o.sizes[d]);
        position /= o.sizes[d];
      }
    }
  }

  // Byte offset that the indices `i` steps along dimension `d` name; false where one is out of range (it is reported).
  template <class I>
  MB_DEVICE bool resolve(const IndexOperands& o, int d, int64_t i, int64_t& offset) const {
    offset = 0;
    for (int k = 0; k < count(o); k++) {
      const int64_t named = *reinterpret_cast<const I*>(index[k] + i * o.index_strides[k][d]);
      const int64_t size = o.indexed_sizes[k];
      const int64_t inside = named < 0 && o.wrap ? named + size : named;
      if (uint64_t(inside) >= uint64_t(size)) {
        if (named != kNowhere) device::report(o.errors, o.code, named, size, o.dimension + k);
        return false;
      }
      offset += inside * o.indexed_strides[k];
    }
    return true;
  }

  // Whether the next `n` indices along dimension `d` are all in range. For builds in which a row is one thread's: a
  // pass that vectorises, after which elements need no check.
  template <class I>
  MB_DEVICE bool all_inside(Block block, const IndexOperands& o, int d, int64_t n) const {
    if constexpr (N == 1) {
      const I size = I(o.indexed_sizes[0] < kLargest<I> ? o.indexed_sizes[0] : kLargest<I>), low = o.wrap ? -size : 0;
      const int64_t stride = o.index_strides[0][d];
      const char* named = index[0];
      const auto outside = [=](I i) { return I(i < low) + I(i >= size); };
      if (stride == int64_t(sizeof(I)))
        return block.template sum<I>(n, [=](int64_t i) { return outside(reinterpret_cast<const I*>(named)[i]); }) == 0;
      return block.template sum<I>(
                 n, [=](int64_t i) { return outside(*reinterpret_cast<const I*>(named + i * stride)); }) == 0;
    } else {
      return false;
    }
  }

  // Calls f(i, byte offset) for the next `n` indices along dimension `d`, which are all_inside; iterations are
  // independent if `kIndependent`, else they go in order.
  template <class I, bool kIndependent, class F>
  MB_DEVICE void each_inside(Block block, const IndexOperands& o, int d, int64_t n, F f) const {
    const int64_t size = o.indexed_sizes[0], by = o.indexed_strides[0], stride = o.index_strides[0][d];
    const char* named = index[0];
    const auto at = [=](int64_t i, int64_t step) {
      const int64_t k = *reinterpret_cast<const I*>(named + i * step);
      f(i, (k < 0 ? k + size : k) * by);
    };
    if (stride != int64_t(sizeof(I))) {
      for (int64_t i = 0; i < n; i++) at(i, stride);
    } else if constexpr (kIndependent) {
      block.each(n, [&](int64_t i) { at(i, sizeof(I)); });
    } else {
      for (int64_t i = 0; i < n; i++) at(i, sizeof(I));
    }
  }
};

// Calls f(Type<I>, integral_constant<N>) for the width and number of the index arrays.
template <class F>
void with_indices(const IndexOperands& o, F f) {
  using One = std::integral_constant<int, 1>;
  using Several = std::integral_constant<int, kMaxIndices>;
  if (o.narrow) {
    o.count == 1 ? f(Type<int32_t>{}, One{}) : f(Type<int32_t>{}, Several{});
  } else {
    o.count == 1 ? f(Type<int64_t>{}, One{}) : f(Type<int64_t>{}, Several{});
  }
}

}  // namespace mybackend::kernels
