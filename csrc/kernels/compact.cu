// Compaction: nonzero, masked_select and masked_scatter, in three passes over contiguous data: count in each chunk,
// scan the counts (one block), write each chunk from where its count begins.
//
// An element is seen as a word; it is zero when the bits under `mask` are: all bits but the sign of a floating-point
// number. Called by csrc/aten/masked.cpp. Spec: test/ops/test_masked.py.
#include "csrc/kernels/compact.h"

#include "csrc/device/portable.h"
#include "csrc/kernels/index_walk.h"

namespace mybackend::kernels {
namespace {

using device::Block;

constexpr int kThreads = 256;

struct Plus {
  MB_DEVICE int64_t operator()(int64_t a, int64_t b) const { return a + b; }
};

template <class W>
struct Elements {
  const W* data;
  uint64_t mask;

  MB_DEVICE bool set(int64_t i) const {
    if constexpr (sizeof(W) == 16)
      return ((data[i].low | data[i].high) & mask) != 0;
    else
      return (data[i] & W(mask)) != 0;
  }
};

MB_DEVICE int64_t length_of(int64_t chunk, int64_t numel) {
  const int64_t left = numel - chunk * kCompactChunk;
  return left < kCompactChunk ? left : kCompactChunk;
}

template <class W>
struct CountChunks {
  Elements<W> elements;
  int64_t numel;
  int64_t* counts;

  MB_DEVICE void operator()(Block block) const {
    const int64_t begin = block.index * kCompactChunk;
    const int64_t count = block.template sum<int32_t>(length_of(block.index, numel),
                                                      [&](int64_t i) { return int32_t(elements.set(begin + i)); });
    block.each(1, [&](int64_t) { counts[block.index] = count; });
  }
};

// counts[c] becomes the sum of the counts before it, counts[chunks] the total.
struct ScanCounts {
  int64_t chunks;
  int64_t* counts;

  MB_DEVICE void operator()(Block block) const {
    block.each(1, [&](int64_t) { counts[chunks] = 0; });
    block.sync();
    int64_t* c = counts;
    // The value stored at i + 1 is needed as a term by iteration i + 1, which has read it before: terms are read first.
    int64_t carry = 0;
    MB_SHARED(block, int64_t, term, kPiece);
    for (int64_t begin = 0; begin < chunks; begin += kPiece) {
      const int64_t n = chunks - begin < kPiece ? chunks - begin : kPiece;
      block.each(n, [&](int64_t i) { term[i] = c[begin + i]; });
      block.sync();
      block.each(1, [&](int64_t) { c[begin] = carry; });
      carry = block.template scan<int64_t>(
          n, carry, Plus{}, [&](int64_t i) { return term[i]; },
          [&](int64_t i, int64_t sum) { c[begin + i + 1] = sum; });
      block.sync();
    }
  }

  static constexpr int64_t kPiece = 1024;
};

// Calls f(i, k) for the k-th set element i of a chunk, k counted over all chunks.
template <class S, class F>
MB_DEVICE void each_set(Block block, int64_t numel, const int64_t* counts, S set, F f) {
  const int64_t begin = block.index * kCompactChunk;
  block.template scan<int64_t>(
      length_of(block.index, numel), counts[block.index], Plus{}, [&](int64_t i) { return int64_t(set(begin + i)); },
      [&](int64_t i, int64_t through) {
        if (set(begin + i)) f(begin + i, through - 1);
      });
}

template <class W>
struct WriteNonzero {
  Elements<W> elements;
  int64_t numel;
  const int64_t* counts;
  int64_t* out;
  int64_t stride, most;

  MB_DEVICE void operator()(Block block) const {
    each_set(
        block, numel, counts, [&](int64_t i) { return elements.set(i); },
        [&](int64_t i, int64_t k) {
          if (k < most) out[k * stride] = i;
        });
  }
};

struct WriteCoordinates {
  Coordinates c;
  static constexpr int64_t kRows = 1024;

  MB_DEVICE void operator()(Block block) const {
    const int64_t begin = block.index * kRows;
    block.each(c.count - begin < kRows ? c.count - begin : kRows, [&](int64_t i) {
      int64_t position = c.positions[begin + i];
      int64_t* row = c.out + (begin + i) * c.row_stride;
      for (int d = c.ndim - 1; d > 0; d--) {
        if (position <= 0xffffffff && c.sizes[d] <= 0xffffffff) {
          const uint32_t p = uint32_t(position), size = uint32_t(c.sizes[d]);
          row[d * c.column_stride] = p % size;
          position = p / size;
        } else {
          row[d * c.column_stride] = position % c.sizes[d];
          position /= c.sizes[d];
        }
      }
      row[0] = position;
    });
  }
};

template <class W>
struct CompactMasked {
  const W* data;
  const uint8_t* mask;
  int64_t numel;
  const int64_t* counts;
  W* out;
  int64_t stride;

  MB_DEVICE void operator()(Block block) const {
    each_set(
        block, numel, counts, [&](int64_t i) { return mask[i] != 0; },
        [&](int64_t i, int64_t k) { out[k * stride] = data[i]; });
  }
};

template <class W>
struct ExpandMasked {
  W* data;
  const uint8_t* mask;
  int64_t numel;
  const int64_t* counts;
  const W* source;

  MB_DEVICE void operator()(Block block) const {
    each_set(
        block, numel, counts, [&](int64_t i) { return mask[i] != 0; },
        [&](int64_t i, int64_t k) { data[i] = source[k]; });
  }
};

// f(Type<word>) for a word of the element's size.
template <class F>
void with_word(DType dtype, F f) {
  switch (size_of(dtype)) {
    case 1:
      return f(Type<uint8_t>{});
    case 2:
      return f(Type<uint16_t>{});
    case 4:
      return f(Type<uint32_t>{});
    case 8:
      return f(Type<uint64_t>{});
    default:
      return f(Type<Word16>{});
  }
}

uint64_t mask_of(DType dtype) {
  switch (dtype) {
    case DType::Half:
    case DType::BFloat16:
    case DType::ComplexHalf:
      return 0x7fff7fff7fff7fff;
    case DType::Float:
    case DType::ComplexFloat:
      return 0x7fffffff7fffffff;
    case DType::Double:
    case DType::ComplexDouble:
      return 0x7fffffffffffffff;
    default:
      return ~uint64_t(0);
  }
}

device::Grid chunk_grid(int64_t numel) {
  return {compact_chunks(numel), kThreads, kCompactChunk};
}

}  // namespace

MB_DEFINE_KERNEL(count_nonzero_chunks, (Stream stream, const char* data, DType dtype, int64_t numel, int64_t* counts)) {
  with_word(dtype, [&](auto type) {
    using W = typename decltype(type)::type;
    device::launch(stream, chunk_grid(numel),
                   CountChunks<W>{{reinterpret_cast<const W*>(data), mask_of(dtype)}, numel, counts});
  });
  device::launch(stream, {1, kThreads, compact_chunks(numel)}, ScanCounts{compact_chunks(numel), counts});
}

MB_DEFINE_KERNEL(write_nonzero, (Stream stream, const char* data, DType dtype, int64_t numel, const int64_t* counts,
                                 int64_t* out, int64_t stride, int64_t most)) {
  with_word(dtype, [&](auto type) {
    using W = typename decltype(type)::type;
    device::launch(
        stream, chunk_grid(numel),
        WriteNonzero<W>{{reinterpret_cast<const W*>(data), mask_of(dtype)}, numel, counts, out, stride, most});
  });
}

MB_DEFINE_KERNEL(write_coordinates, (Stream stream, const Coordinates& c)) {
  device::launch(stream, {device::ceil_div(c.count, WriteCoordinates::kRows), kThreads, WriteCoordinates::kRows},
                 WriteCoordinates{c});
}

MB_DEFINE_KERNEL(compact_masked, (Stream stream, const char* data, DType dtype, const uint8_t* mask, int64_t numel,
                                  const int64_t* counts, char* out, int64_t stride)) {
  with_word(dtype, [&](auto type) {
    using W = typename decltype(type)::type;
    device::launch(
        stream, chunk_grid(numel),
        CompactMasked<W>{reinterpret_cast<const W*>(data), mask, numel, counts, reinterpret_cast<W*>(out), stride});
  });
}

MB_DEFINE_KERNEL(expand_masked, (Stream stream, char* data, DType dtype, const uint8_t* mask, int64_t numel,
                                 const int64_t* counts, const char* source)) {
  with_word(dtype, [&](auto type) {
    using W = typename decltype(type)::type;
    device::launch(
        stream, chunk_grid(numel),
        ExpandMasked<W>{reinterpret_cast<W*>(data), mask, numel, counts, reinterpret_cast<const W*>(source)});
  });
}

}  // namespace mybackend::kernels
