// pad_inside: reflection and replication. The backward gathers, for each input element, the few outputs it went to, so
// it is deterministic. Called by csrc/aten/padding.cpp. Spec: test/ops/test_resample.py.
#include "csrc/kernels/pad_inside.h"

#include "csrc/device/rows.h"
#include "csrc/kernels/index_walk.h"

namespace mybackend::kernels {
namespace {

using device::RowSplit;

constexpr int kThreads = 128;
constexpr int64_t kElements = 2048;

MB_DEVICE int64_t inside(int64_t o, int64_t before, int64_t n, bool reflect) {
  const int64_t i = o - before;
  if (i < 0) return reflect ? -i : 0;
  if (i >= n) return reflect ? 2 * (n - 1) - i : n - 1;
  return i;
}

template <class W>
struct PadInside {
  Pad p;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    struct Row {
      W* out;
      const W* in;
    };
    device::each_row(
        block, span.rows, span.columns,
        [&](int64_t i) {
          const int64_t row = span.first_row + i;
          const int64_t y = row % p.out_size[1], z = row / p.out_size[1] % p.out_size[2];
          const int64_t plane = row / p.out_size[1] / p.out_size[2];
          const int64_t from = (plane * p.in_size[2] + inside(z, p.before[2], p.in_size[2], p.reflect)) * p.in_size[1] +
                               inside(y, p.before[1], p.in_size[1], p.reflect);
          return Row{reinterpret_cast<W*>(p.out) + row * p.out_size[0],
                     reinterpret_cast<const W*>(p.in) + from * p.in_size[0]};
        },
        [&](const Row& row, int64_t c) {
          const int64_t x = span.first_column + c;
          row.out[x] = row.in[inside(x, p.before[0], p.in_size[0], p.reflect)];
        });
  }
};

// The outputs that copy one input element along a dimension: up to three ranges [first, last].
struct Copies {
  int64_t first[3], last[3];

  MB_DEVICE Copies(const Pad& p, int d, int64_t i) {
    const int64_t n = p.in_size[d], size = p.out_size[d], own = i + p.before[d];
    const bool inside = own >= 0 && own < size;
    first[0] = own;
    last[0] = inside ? own : own - 1;
    first[1] = first[2] = 0;
    last[1] = last[2] = -1;
    if (p.reflect) {
      const int64_t left = p.before[d] - i, right = 2 * (n - 1) - i + p.before[d];
      if (i > 0 && left >= 0 && left < size) first[1] = last[1] = left;
      if (i < n - 1 && right >= 0 && right < size) first[2] = last[2] = right;
    } else {
      if (i == 0 && own > 0) {
        first[1] = 0;
        last[1] = (own < size ? own : size) - 1;
      }
      if (i == n - 1 && own < size - 1) {
        first[2] = own + 1 > 0 ? own + 1 : 0;
        last[2] = size - 1;
      }
    }
  }
};

template <class T>
struct PadInsideBackward {
  Pad p;
  RowSplit split;

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    device::each_row(
        block, span.rows, span.columns, [&](int64_t i) { return span.first_row + i; },
        [&](int64_t row, int64_t c) {
          using C = Compute<T>;
          const int64_t x = span.first_column + c;
          const int64_t plane = row / p.in_size[1] / p.in_size[2];
          const Copies xs(p, 0, x), ys(p, 1, row % p.in_size[1]), zs(p, 2, row / p.in_size[1] % p.in_size[2]);
          const T* grad = reinterpret_cast<const T*>(p.in) + plane * p.out_size[2] * p.out_size[1] * p.out_size[0];
          C sum = C(0);
          for (int rz = 0; rz < 3; rz++)
            for (int64_t z = zs.first[rz]; z <= zs.last[rz]; z++)
              for (int ry = 0; ry < 3; ry++)
                for (int64_t y = ys.first[ry]; y <= ys.last[ry]; y++)
                  for (int rx = 0; rx < 3; rx++)
                    for (int64_t k = xs.first[rx]; k <= xs.last[rx]; k++)
                      sum += C(grad[(z * p.out_size[1] + y) * p.out_size[0] + k]);
          reinterpret_cast<T*>(p.out)[row * p.in_size[0] + x] = convert<T>(sum);
        });
  }
};

template <class W>
void pad(Stream stream, const Pad& p) {
  const RowSplit split = RowSplit::of(p.planes * p.out_size[2] * p.out_size[1], p.out_size[0], kElements);
  device::launch(stream, {split.blocks(), kThreads, split.elements_per_block()}, PadInside<W>{p, split});
}

}  // namespace

MB_DEFINE_KERNEL(pad_inside, (Stream stream, const Pad& p)) {
  switch (size_of(p.dtype)) {
    case 1:
      return pad<uint8_t>(stream, p);
    case 2:
      return pad<uint16_t>(stream, p);
    case 4:
      return pad<uint32_t>(stream, p);
    case 8:
      return pad<uint64_t>(stream, p);
    default:
      return pad<Word16>(stream, p);
  }
}

MB_DEFINE_KERNEL(pad_inside_backward, (Stream stream, const Pad& p)) {
  visit<Join<Floats, Halves, Complexes>>(p.dtype, "pad_backward", [&](auto type) {
    using T = typename decltype(type)::type;
    const RowSplit split = RowSplit::of(p.planes * p.in_size[2] * p.in_size[1], p.in_size[0], kElements);
    device::launch(stream, {split.blocks(), kThreads, split.elements_per_block() * 2}, PadInsideBackward<T>{p, split});
  });
}

}  // namespace mybackend::kernels
