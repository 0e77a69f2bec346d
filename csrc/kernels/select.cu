// kthvalue, median and nanmedian by bisection of bits: elements become unsigned keys in the same order, and the wanted
// key is found from its highest bit down, by counting the elements that begin as it does and go on with a 0.
//
// One counting pass over the line for every bit of the element's type: no memory beside the line, the same answer for
// any number of threads, and passes that vectorise. Called by csrc/aten/select.cpp. Spec: test/ops/test_select.py.
#include "csrc/kernels/select.h"

#include "csrc/device/fold.h"

namespace mybackend::kernels {
namespace {

using device::Block;

template <class T>
struct KeyOf {
  using type = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
};
template <class T>
using Key = typename KeyOf<T>::type;

// Keys are ordered as elements are; every NaN has the largest.
template <class T>
MB_DEVICE Key<T> key_of(T x) {
  using K = Key<T>;
  constexpr K kTop = K(K(1) << (8 * sizeof(T) - 1));
  if constexpr (std::is_floating_point_v<T>) {
    const T zero_is_positive = x + T(0);
    K bits;
    memcpy(&bits, &zero_is_positive, sizeof(bits));
    const K key = bits & kTop ? K(~bits) : K(bits | kTop);
    return x != x ? K(~K(0)) : key;
  } else if constexpr (std::is_signed_v<T>) {
    return K(K(x) ^ kTop);
  } else {
    return K(x);
  }
}

template <class T, class Stored>
struct SelectPlace {
  Reduction r;
  Place place;
  int64_t k;

  // The sum of f(x) over the line.
  template <class F>
  MB_DEVICE int64_t count(Block block, device::RowReader<T, Stored>& reader, const char* base, F f) const {
    int64_t total = 0;
    for (int64_t p = 0; p < r.count;) {
      const int64_t n = reader.longest(r, r.count - p);
      const auto x = reader.read(r, base, p, n);
      total += device::fold<int32_t>(block, n, 0, device::Add{}, [=](int64_t i) { return int32_t(f(T(x[i]))); });
      p += n;
    }
    return total;
  }

  MB_DEVICE void operator()(Block block) const {
    using K = Key<T>;
    device::RowReader<T, Stored> reader;
    const char* base = r.in + device::offset_of(block.index, r.kept, r.kept_size, r.kept_stride);
    int64_t rank = k;
    if (place != Place::Given) {
      const int64_t nans = count(block, reader, base, [](T x) { return x != x; });
      if (place == Place::Median)
        rank = nans > 0 ? r.count - 1 : (r.count - 1) / 2;
      else
        rank = nans == r.count ? r.count - 1 : (r.count - nans - 1) / 2;
    }
    K found = 0;
    for (int bit = int(8 * sizeof(T)) - 1; bit >= 0; bit--) {
      const K one = K(K(1) << bit), prefix = K(found >> bit);
      const int64_t below = count(block, reader, base, [=](T x) { return K(key_of(x) >> bit) == prefix; });
      if (rank >= below) {
        rank -= below;
        found = K(found | one);
      }
    }
    for (int64_t p = 0; p < r.count;) {
      const int64_t n = reader.longest(r, r.count - p);
      const auto x = reader.read(r, base, p, n);
      const int64_t at = device::fold_first(block, n, [=](int64_t i) { return key_of(T(x[i])) == found; });
      if (at < n) {
        if (block.thread == 0) {
          device::store_one(r.out[0] + device::offset_of(block.index, r.kept, r.kept_size, r.out_stride[0]), T(x[at]),
                            r.out_dtype[0]);
          if (r.out[1] != nullptr)
            device::store_one(r.out[1] + device::offset_of(block.index, r.kept, r.kept_size, r.out_stride[1]), p + at,
                              r.out_dtype[1]);
        }
        return;
      }
      p += n;
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(select_place, (Stream stream, const Reduction& r, Place place, int64_t k)) {
  visit<Join<Floats, Integers>>(compute_dtype(r.in_dtype), place == Place::Given ? "kthvalue" : "median",
                                [&](auto type) {
                                  using T = typename decltype(type)::type;
                                  device::visit_stored<T>(r.in_dtype, [&](auto stored) {
                                    const int threads = r.count <= 1024 ? 32 : r.count <= 4096 ? 128 : 512;
                                    device::launch(stream, {r.outputs, threads, r.count * 8},
                                                   SelectPlace<T, typename decltype(stored)::type>{r, place, k});
                                  });
                                });
}

}  // namespace mybackend::kernels
