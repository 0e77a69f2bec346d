// The gradient of an embedding's weights, and renormalization of rows.
//
// A block owns a range of weight rows in a strip of columns. It reads all indices, a chunk at a time, collects the
// positions that fall in its range, in order, and adds their gradients to rows that nobody else writes: no atomics, and
// the order of each sum is that of the indices, whatever the number of blocks and threads. Called by
// csrc/aten/embedding.cpp. Spec: test/ops/test_embedding.py.
#include "csrc/kernels/embedding.h"

#include <algorithm>

#include "csrc/device/errors.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kColumns = 128;
constexpr int kChunk = 1024;

struct Add {
  MB_DEVICE int operator()(int a, int b) const { return a + b; }
};

// A block that is one thread takes whole rows: they lie together.
constexpr int64_t strips_of(int64_t width) {
  return device::kThreadedBlocks && width > 0 ? device::ceil_div(width, kColumns) : 1;
}

template <class S, class I>
struct Backward {
  using A = Compute<S>;
  const I* indices;
  int64_t count, padding, rows, width, ranges;
  const S* grad;
  const I* source;
  const A* factor;
  int64_t* counts;
  A* grad_weight;
  device::ErrorRecord* errors;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, int, members, kChunk);
    const int64_t strips = strips_of(width), strip = device::ceil_div(width, strips);
    const int64_t range = block.index / strips, first = block.index % strips * strip;
    const int64_t low = rows * range / ranges, high = rows * (range + 1) / ranges;
    const int64_t columns = width - first < strip ? width - first : strip;
    for (int64_t row = low; row < high; row++) {
      A* to = grad_weight + row * width + first;
      block.each(columns, [&](int64_t d) { to[d] = A(0); });
    }
    for (int64_t begin = 0; begin < count; begin += kChunk) {
      const int64_t n = count - begin < kChunk ? count - begin : kChunk;
      const int found = collect(block, begin, n, low, high, members);
      block.sync();
      for (int m = 0; m < found; m++) {
        const int64_t i = begin + members[m], row = int64_t(indices[i]);
        const S* from = grad + (source == nullptr ? i : int64_t(source[i])) * width + first;
        A* to = grad_weight + row * width + first;
        const A scale = factor == nullptr ? A(1) : factor[i];
        block.each(columns, [&](int64_t d) { to[d] += widen(from[d]) * scale; });
        if (counts != nullptr && first == 0) block.each(1, [&](int64_t) { counts[row]++; });
      }
      block.sync();
    }
    if (count > 0 && range == 0 && first == 0) check(block);
  }

  // The positions among n indices from `begin` on that name a row in [low, high), in order; returns how many.
  MB_DEVICE int collect(Block block, int64_t begin, int64_t n, int64_t low, int64_t high, int* members) const {
    const auto belongs = [&](int64_t i) {
      const int64_t row = int64_t(indices[begin + i]);
      return row >= low && row < high && row != padding ? 1 : 0;
    };
    return block.scan<int>(n, 0, Add{}, belongs, [&](int64_t i, int so_far) {
      if (belongs(i)) members[so_far - 1] = int(i);
    });
  }

  MB_DEVICE void check(Block block) const {
    block.each(count, [&](int64_t i) {
      const int64_t row = int64_t(indices[i]);
      if (row < 0 || row >= rows) device::report(errors, device::kIndexOutOfRangeInSelf);
    });
  }
};

template <class A>
struct DivideByCounts {
  const int64_t* counts;
  A* weight;
  int64_t width;

  MB_DEVICE void operator()(Block block) const {
    const int64_t count = counts[block.index];
    A* row = weight + block.index * width;
    if (count > 1) block.each(width, [&](int64_t d) { row[d] /= A(count); });
  }
};

template <class S>
struct Renorm {
  using A = Compute<S>;
  const bool* used;
  S* weight;
  int64_t width;
  A max_norm, p;

  MB_DEVICE A norm(Block block, const S* row) const {
    if (p == A(1)) return block.sum<A>(width, [&](int64_t d) { return math::fabs(widen(row[d])); });
    if (p == A(2)) return math::sqrt(block.sum<A>(width, [&](int64_t d) { return widen(row[d]) * widen(row[d]); }));
    if (p == std::numeric_limits<A>::infinity())
      return block.max<A>(width, [&](int64_t d) { return math::fabs(widen(row[d])); });
    return math::pow(block.sum<A>(width, [&](int64_t d) { return math::pow(math::fabs(widen(row[d])), p); }), A(1) / p);
  }

  MB_DEVICE void operator()(Block block) const {
    if (!used[block.index]) return;
    S* row = weight + block.index * width;
    const A length = norm(block, row);
    if (length > max_norm) {
      const A scale = max_norm / (length + A(1e-7));
      block.each(width, [&](int64_t d) { row[d] = narrow<S>(widen(row[d]) * scale); });
    }
  }
};

// Enough ranges to fill a GPU; where a block is one thread, few enough that reading the indices again for each costs
// little beside the rows.
int64_t ranges_of(int64_t rows, int64_t width, int64_t count, int64_t strips) {
  const int64_t wanted = device::kThreadedBlocks ? std::max<int64_t>(1, 264 / strips)
                                                 : std::clamp<int64_t>(rows * width / (8 * (count + 1)), 2, 16);
  return std::min(rows, wanted);
}

}  // namespace

MB_DEFINE_KERNEL(embedding_backward, (Stream stream, const EmbeddingIndices& indices, int64_t rows, int64_t width,
                                      DType dtype, const void* grad, const void* source, const void* factor,
                                      int64_t* counts, void* grad_weight, ErrorRecord* errors)) {
  visit<Join<Floats, Halves>>(dtype, "embedding_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    visit<Types<int64_t, int32_t>>(indices.dtype, "embedding_backward", [&](auto index_type) {
      using I = typename decltype(index_type)::type;
      const int64_t strips = strips_of(width), ranges = ranges_of(rows, width, indices.count, strips);
      const int64_t work =
          indices.count + (rows + indices.count) * device::ceil_div(width, strips) / std::max<int64_t>(1, ranges);
      device::launch(stream, {ranges * strips, kColumns, work},
                     Backward<S, I>{static_cast<const I*>(indices.data), indices.count, indices.padding, rows, width,
                                    ranges, static_cast<const S*>(grad), static_cast<const I*>(source),
                                    static_cast<const A*>(factor), counts, static_cast<A*>(grad_weight), errors});
      if (counts != nullptr)
        device::launch(stream, {rows, kColumns, width}, DivideByCounts<A>{counts, static_cast<A*>(grad_weight), width});
    });
  });
}

MB_DEFINE_KERNEL(embedding_renorm, (Stream stream, DType dtype, int64_t rows, int64_t width, const bool* used,
                                    double max_norm, double p, void* weight)) {
  visit<Join<Floats, Halves>>(dtype, "embedding_renorm_", [&](auto type) {
    using S = typename decltype(type)::type;
    using A = Compute<S>;
    device::launch(stream, {rows, kColumns, width}, Renorm<S>{used, static_cast<S*>(weight), width, A(max_norm), A(p)});
  });
}

}  // namespace mybackend::kernels
