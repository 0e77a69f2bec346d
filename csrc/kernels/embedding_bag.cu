// embedding_bag: sums, means or maxima of bags of weight rows, and the gradients that are not embedding_backward's.
//
// Forward: a block a bag, a strip of columns at a time; the running result of a column is in shared memory and touched
// by one thread only, so rows are read densely and added in order. Called by csrc/aten/embedding_bag.cpp. Spec:
// test/ops/test_embedding.py.
#include <algorithm>

#include "csrc/device/errors.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"
#include "csrc/kernels/embedding.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kColumns = 128;

template <class S, class I>
struct Forward {
  using A = Compute<S>;
  EmbeddingBags what;
  int64_t rows, width;
  const S* weight;
  const S* factor;
  S* out;
  I* offset2bag;
  I* bag_size;
  I* max_indices;
  device::ErrorRecord* errors;

  // Begin of a bag; bags that reach outside the indices are cut.
  MB_DEVICE int64_t offset(int64_t bag) const {
    if (bag == what.bags && !what.include_last_offset) return what.indices.count;
    const int64_t at = int64_t(static_cast<const I*>(what.offsets)[bag]);
    return at < 0 ? 0 : at > what.indices.count ? what.indices.count : at;
  }

  MB_DEVICE bool takes_part(int64_t row) const { return row != what.indices.padding && row >= 0 && row < rows; }

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, A, result, kColumns);
    MB_SHARED(block, int64_t, winner, kColumns);
    const I* indices = static_cast<const I*>(what.indices.data);
    const int64_t bag = block.index, begin = offset(bag), end = offset(bag + 1);
    const int64_t size = block.sum<int64_t>(end - begin, [&](int64_t i) {
      return int64_t(indices[begin + i]) != what.indices.padding ? int64_t(1) : int64_t(0);
    });
    block.each(1, [&](int64_t) { bag_size[bag] = I(size); });
    block.each(end - begin, [&](int64_t i) {
      offset2bag[begin + i] = I(bag);
      const int64_t row = int64_t(indices[begin + i]);
      if (row < 0 || row >= rows) device::report(errors, device::kIndexOutOfRangeInSelf);
    });
    const bool max = what.mode == BagMode::Max;
    for (int64_t first = 0; first < width; first += kColumns) {
      const int64_t columns = width - first < kColumns ? width - first : kColumns;
      block.each(columns, [&](int64_t d) {
        result[d] = A(0);
        winner[d] = -1;
      });
      for (int64_t i = begin; i < end; i++) {
        const int64_t row = int64_t(indices[i]);
        if (!takes_part(row)) continue;
        const S* from = weight + row * width + first;
        if (max) {
          block.each(columns, [&](int64_t d) {
            const A value = widen(from[d]);
            if (winner[d] < 0 || value > result[d]) {
              result[d] = value;
              winner[d] = row;
            }
          });
        } else {
          const A scale = factor == nullptr ? A(1) : A(widen(factor[i]));
          block.each(columns, [&](int64_t d) { result[d] += widen(from[d]) * scale; });
        }
      }
      const A divisor = what.mode == BagMode::Mean && size > 0 ? A(size) : A(1);
      S* to = out + bag * width + first;
      block.each(columns, [&](int64_t d) { to[d] = narrow<S>(result[d] / divisor); });
      if (max) {
        I* winners = max_indices + bag * width + first;
        block.each(columns, [&](int64_t d) { winners[d] = I(winner[d] < 0 ? 0 : winner[d]); });
      }
    }
  }
};

template <class S, class I>
struct MaxBackward {
  using A = Compute<S>;
  const S* grad;
  const I* winner;
  const I* bag_size;
  A* grad_weight;
  int64_t bags, rows, width;

  // A block a strip of columns: a column is one thread's.
  MB_DEVICE void operator()(Block block) const {
    const int64_t first = block.index * kColumns;
    const int64_t columns = width - first < kColumns ? width - first : kColumns;
    for (int64_t row = 0; row < rows; row++) {
      A* to = grad_weight + row * width + first;
      block.each(columns, [&](int64_t d) { to[d] = A(0); });
    }
    for (int64_t bag = 0; bag < bags; bag++) {
      if (bag_size[bag] == 0) continue;
      const int64_t at = bag * width + first;
      block.each(columns,
                 [&](int64_t d) { grad_weight[int64_t(winner[at + d]) * width + first + d] += widen(grad[at + d]); });
    }
  }
};

template <class S, class I>
struct FactorBackward {
  using A = Compute<S>;
  const I* indices;
  int64_t padding, rows, width;
  const S* grad;
  const S* weight;
  const I* offset2bag;
  S* out;

  MB_DEVICE void operator()(Block block) const {
    const int64_t row = int64_t(indices[block.index]);
    const bool takes_part = row != padding && row >= 0 && row < rows;
    const S* g = grad + int64_t(offset2bag[block.index]) * width;
    const S* w = weight + (takes_part ? row : 0) * width;
    const A dot = block.sum<A>(takes_part ? width : 0, [&](int64_t d) { return widen(g[d]) * widen(w[d]); });
    block.each(1, [&](int64_t) { out[block.index] = narrow<S>(dot); });
  }
};

// Calls f(Type<element>, Type<index>).
template <class F>
void visit_types(DType dtype, DType index_dtype, const char* op, F f) {
  visit<Join<Floats, Halves>>(dtype, op, [&](auto type) {
    visit<Types<int64_t, int32_t>>(index_dtype, op, [&](auto index) { f(type, index); });
  });
}

}  // namespace

MB_DEFINE_KERNEL(embedding_bag, (Stream stream, const EmbeddingBags& what, DType dtype, int64_t rows, int64_t width,
                                 const void* weight, const void* factor, void* out, void* offset2bag, void* bag_size,
                                 void* max_indices, ErrorRecord* errors)) {
  visit_types(dtype, what.indices.dtype, "embedding_bag", [&](auto type, auto index) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    const int64_t in_bag = device::ceil_div(what.indices.count, std::max<int64_t>(1, what.bags));
    device::launch(stream, {what.bags, kColumns, in_bag * width},
                   Forward<S, I>{what, rows, width, static_cast<const S*>(weight), static_cast<const S*>(factor),
                                 static_cast<S*>(out), static_cast<I*>(offset2bag), static_cast<I*>(bag_size),
                                 static_cast<I*>(max_indices), errors});
  });
}

MB_DEFINE_KERNEL(embedding_bag_max_backward,
                 (Stream stream, DType dtype, DType index_dtype, int64_t bags, int64_t rows, int64_t width,
                  const void* grad, const void* winner, const void* bag_size, void* grad_weight)) {
  visit_types(dtype, index_dtype, "embedding_bag_backward", [&](auto type, auto index) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    device::launch(
        stream, {device::ceil_div(width, kColumns), kColumns, (bags + rows) * kColumns},
        MaxBackward<S, I>{static_cast<const S*>(grad), static_cast<const I*>(winner), static_cast<const I*>(bag_size),
                          static_cast<Compute<S>*>(grad_weight), bags, rows, width});
  });
}

MB_DEFINE_KERNEL(embedding_bag_factor_backward,
                 (Stream stream, const EmbeddingIndices& indices, DType dtype, int64_t rows, int64_t width,
                  const void* grad, const void* weight, const void* offset2bag, void* out)) {
  visit_types(dtype, indices.dtype, "embedding_bag_backward", [&](auto type, auto index) {
    using S = typename decltype(type)::type;
    using I = typename decltype(index)::type;
    device::launch(stream, {indices.count, 32, width},
                   FactorBackward<S, I>{static_cast<const I*>(indices.data), indices.padding, rows, width,
                                        static_cast<const S*>(grad), static_cast<const S*>(weight),
                                        static_cast<const I*>(offset2bag), static_cast<S*>(out)});
  });
}

}  // namespace mybackend::kernels
