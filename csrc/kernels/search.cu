// search_sorted, owner_of_positions, is_in: look-ups by value.
//
// An index is found by halving; comparisons are those of std::lower_bound (`right` false: first boundary >= value) and
// std::upper_bound, written so that NaN counts as the greatest value.
// Called by csrc/aten/sort.cpp. Spec: test/ops/test_sort.py.
#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"
#include "csrc/kernels/sort.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int kThreads = 128;
constexpr int64_t kElements = 1024;

template <class F>
MB_DEVICE void each_of(Block block, int64_t numel, F f) {
  const int64_t begin = block.index * kElements;
  block.each(numel - begin < kElements ? numel - begin : kElements, [&](int64_t i) { f(begin + i); });
}

device::Grid grid_of(int64_t numel, int64_t steps) {
  return {device::ceil_div(numel, kElements), kThreads, kElements * steps};
}

template <class T>
struct SearchSorted {
  Search s;

  MB_DEVICE void operator()(Block block) const {
    each_of(block, s.numel, [&](int64_t i) {
      using C = Compute<T>;
      const int64_t row = s.shared ? 0 : i / s.per_row * s.columns;
      const T* boundaries = reinterpret_cast<const T*>(s.boundaries) + row;
      const int64_t* sorter = s.sorter == nullptr ? nullptr : s.sorter + row;
      const C value = C(reinterpret_cast<const T*>(s.values)[i]);
      int64_t begin = 0, end = s.columns;
      while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        const C at = C(boundaries[sorter == nullptr ? middle : sorter[middle]]);
        const bool reached = s.right ? at > value : at >= value;
        if (reached)
          end = middle;
        else
          begin = middle + 1;
      }
      if (s.narrow)
        reinterpret_cast<int32_t*>(s.out)[i] = int32_t(begin);
      else
        reinterpret_cast<int64_t*>(s.out)[i] = begin;
    });
  }
};

struct OwnerOfPositions {
  const int64_t* ends;
  int64_t count;
  char* out;
  bool narrow;
  int64_t numel;

  MB_DEVICE void operator()(Block block) const {
    each_of(block, numel, [&](int64_t p) {
      int64_t begin = 0, end = count;
      while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;
        if (ends[middle] > p)
          end = middle;
        else
          begin = middle + 1;
      }
      if (narrow)
        reinterpret_cast<int32_t*>(out)[p] = int32_t(begin);
      else
        reinterpret_cast<int64_t*>(out)[p] = begin;
    });
  }
};

template <class T>
struct IsIn {
  const T* elements;
  const T* tests;
  int64_t numel, test_count;
  bool invert;
  bool* out;

  MB_DEVICE void operator()(Block block) const {
    each_of(block, numel, [&](int64_t i) {
      const auto value = Compute<T>(elements[i]);
      bool found = false;
      for (int64_t k = 0; k < test_count; k++) found = found || Compute<T>(tests[k]) == value;
      out[i] = found != invert;
    });
  }
};

using Comparable = Join<Floats, Halves, Integers, Booleans, Unsigneds>;

}  // namespace

MB_DEFINE_KERNEL(search_sorted, (Stream stream, const Search& s)) {
  visit<Comparable>(s.dtype, "searchsorted_out", [&](auto type) {
    device::launch(stream, grid_of(s.numel, 16), SearchSorted<typename decltype(type)::type>{s});
  });
}

MB_DEFINE_KERNEL(owner_of_positions,
                 (Stream stream, const int64_t* ends, int64_t count, char* out, bool narrow, int64_t numel)) {
  device::launch(stream, grid_of(numel, 8), OwnerOfPositions{ends, count, out, narrow, numel});
}

MB_DEFINE_KERNEL(is_in, (Stream stream, const char* elements, const char* tests, DType dtype, int64_t numel,
                         int64_t test_count, bool invert, bool* out)) {
  visit<Comparable>(dtype, "isin_default", [&](auto type) {
    using T = typename decltype(type)::type;
    device::launch(stream, grid_of(numel, 1 + test_count / 8),
                   IsIn<T>{reinterpret_cast<const T*>(elements), reinterpret_cast<const T*>(tests), numel, test_count,
                           invert, out});
  });
}

}  // namespace mybackend::kernels
