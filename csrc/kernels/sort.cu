// sort_rows: stable sorts of contiguous rows (radix.h). A block handles several rows, one after the other. Called by
// csrc/aten/sort.cpp. Spec: test/ops/test_sort.py.
#include "csrc/kernels/radix.h"

namespace mybackend::kernels {
namespace {

using namespace radix;

template <class T>
struct SortLong {
  SortRows r;
  int64_t blocks;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, uint32_t, counts, kCounts);
    const Key<T> flip = r.descending ? Key<T>(~Key<T>(0)) : Key<T>(0);
    char* scratch = r.scratch + block.index * (sort_scratch_bytes(1, r.columns));
    for (int64_t row = block.index; row < r.rows; row += blocks) {
      auto pairs = pairs_in<Key<T>>(scratch, r.columns);
      const T* in = reinterpret_cast<const T*>(r.in) + row * r.columns;
      block.each(r.columns, [&](int64_t i) {
        pairs.key[i] = key_of(in[i], flip);
        pairs.position[i] = uint32_t(i);
      });
      block.sync();
      radix_sort(block, pairs, r.columns, counts);
      fetch_row(block, pairs, r.columns, in, reinterpret_cast<T*>(r.values) + row * r.columns,
                r.indices + row * r.columns);
    }
  }
};

}  // namespace

MB_DEFINE_KERNEL(sort_rows, (Stream stream, const SortRows& r)) {
  visit_sortable(r.dtype, "sort", [&](auto type) {
    using T = typename decltype(type)::type;
    if (r.columns <= kShortRow) return sort_short_rows<T>(stream, r);
    const int64_t blocks = sort_blocks(r.rows, r.columns);
    device::launch(stream, {blocks, kThreads, device::ceil_div(r.rows, blocks) * r.columns * 8},
                   SortLong<T>{r, blocks});
  });
}

}  // namespace mybackend::kernels
