// The walks behind scatter_elements: to[index] = update(to[index], from), by one int64 index array.
//
// The first `fiber_dims` dimensions are fibers: positions in different fibers never meet. Three ways to walk:
//   FiberRows   a block owns some fibers and takes the remaining dimensions one position after the other, each time
//   over
//               its fibers. For fibers that lie side by side (rows of a matrix added to rows of another).
//   FiberEach   one thread owns a fiber and walks it. For walks along the memory (scatter along the last dimension).
//   Everywhere  all positions at once, with atomic updates; only where the order does not matter, and fibers are few or
//               whole rows are assigned.
// The first two combine colliding elements in the order of their positions: the result does not depend on the number of
// threads. Instantiated by scatter.cu and scatter_reduce.cu.
#pragma once

#include "csrc/device/atomic.h"
#include "csrc/device/rows.h"
#include "csrc/device/widen.h"
#include "csrc/kernels/index_walk.h"

namespace mybackend::kernels {

using device::RowSplit;

// The rest of scatter_elements, defined in scatter_reduce.cu.
void scatter_reduce_elements(Stream stream, const IndexOperands& o, Update update);

namespace scatter {

struct Assign {
  template <class T>
  MB_DEVICE T operator()(T, T value) const {
    return value;
  }
};

struct Add {
  template <class T>
  MB_DEVICE T operator()(T held, T value) const {
    if constexpr (std::is_same_v<T, bool>)
      return held || value;
    else
      return device::narrow<T>(device::widen(held) + device::widen(value));
  }
};

struct Multiply {
  template <class T>
  MB_DEVICE T operator()(T held, T value) const {
    if constexpr (std::is_same_v<T, bool>)
      return held && value;
    else
      return convert<T>(Compute<T>(held) * Compute<T>(value));
  }
};

struct Maximum {
  template <class T>
  MB_DEVICE T operator()(T held, T value) const {
    const auto a = Compute<T>(held), b = Compute<T>(value);
    return math::isnan(b) || b > a ? value : held;
  }
};

struct Minimum {
  template <class T>
  MB_DEVICE T operator()(T held, T value) const {
    const auto a = Compute<T>(held), b = Compute<T>(value);
    return math::isnan(b) || b < a ? value : held;
  }
};

constexpr int kThreads = 128;
constexpr int64_t kFibers = 128;
constexpr int64_t kElements = 2048;

template <class T, class Op>
MB_DEVICE void update(char* to, const char* from) {
  T* at = reinterpret_cast<T*>(to);
  *at = Op{}(*at, *reinterpret_cast<const T*>(from));
}

// Updates along dimension `d` by indices that are all in range.
template <class T, class Op, bool kIndependent>
MB_DEVICE void unchecked(Block block, const IndexOperands& o, const Place<1>& place, int d, int64_t n) {
  char* to = place.to;
  const char* from = place.from;
  const int64_t to_stride = o.to_strides[d], from_stride = o.from_strides[d];
  place.each_inside<int64_t, kIndependent>(block, o, d, n, [=](int64_t i, int64_t offset) {
    update<T, Op>(to + i * to_stride + offset, from + i * from_stride);
  });
}

// Fibers as (rows, columns): columns are dimension 0.
template <class T, class Op>
struct FiberRows {
  IndexOperands o;
  RowSplit split;
  int64_t walk;  // positions in a fiber
  bool by_row;   // no index varies along dimension 0
  bool dense;    // both arrays are dense along dimension 0

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    if constexpr (!device::kThreadedBlocks) {
      if (by_row && dense && o.ndim == o.fiber_dims + 1) {
        for (int64_t row = 0; row < span.rows; row++) walk_row(block, span, row);
        return;
      }
    }
    for (int64_t w = 0; w < walk; w++) {
      auto start = Place<1>::origin(o);
      start.follow(o, o.fiber_dims, o.ndim, w);
      start.step(o, 0, span.first_column);
      auto row_of = [&](int64_t row) {
        Place<1> place = start;
        place.follow(o, 1, o.fiber_dims, span.first_row + row);
        return place;
      };
      if (by_row) {
        auto resolved = [&](int64_t row) {
          Place<1> place = row_of(row);
          int64_t offset;
          if (place.resolve<int64_t>(o, 0, 0, offset))
            place.to += offset;
          else
            place.to = nullptr;
          return place;
        };
        if (dense) {
          device::each_row(block, span.rows, span.columns, resolved, [](const Place<1>& place, int64_t c) {
            if (place.to != nullptr)
              update<T, Op>(place.to + c * int64_t(sizeof(T)), place.from + c * int64_t(sizeof(T)));
          });
        } else {
          device::each_row(block, span.rows, span.columns, resolved, [&](const Place<1>& place, int64_t c) {
            if (place.to != nullptr) update<T, Op>(place.to + c * o.to_strides[0], place.from + c * o.from_strides[0]);
          });
        }
      } else {
        const auto checked = [&](const Place<1>& place, int64_t c) {
          int64_t offset;
          if (place.resolve<int64_t>(o, 0, c, offset))
            update<T, Op>(place.to + c * o.to_strides[0] + offset, place.from + c * o.from_strides[0]);
        };
        if constexpr (!device::kThreadedBlocks) {
          for (int64_t row = 0; row < span.rows; row++) {
            const Place<1> place = row_of(row);
            if (place.all_inside<int64_t>(block, o, 0, span.columns))
              unchecked<T, Op, true>(block, o, place, 0, span.columns);
            else
              block.each(span.columns, [&](int64_t c) { checked(place, c); });
          }
        } else {
          device::each_row(block, span.rows, span.columns, row_of, checked);
        }
      }
      block.sync();
    }
  }

  // All positions of one dense row of fibers, walked along one dimension: what remains of a position is its index.
  MB_DEVICE void walk_row(Block block, const device::RowSpan& span, int64_t row) const {
    auto place = Place<1>::origin(o);
    place.step(o, 0, span.first_column);
    place.follow(o, 1, o.fiber_dims, span.first_row + row);
    const int d = o.fiber_dims;
    const int64_t to_stride = o.to_strides[d], from_stride = o.from_strides[d];
    for (int64_t w = 0; w < walk; w++) {
      int64_t offset;
      if (!place.resolve<int64_t>(o, d, w, offset)) continue;
      T* to = reinterpret_cast<T*>(place.to + w * to_stride + offset);
      const T* from = reinterpret_cast<const T*>(place.from + w * from_stride);
      block.each(span.columns, [=](int64_t c) { to[c] = Op{}(to[c], from[c]); });
    }
  }
};

template <class T, class Op>
struct FiberEach {
  IndexOperands o;
  int64_t fibers, per_block, walk;

  MB_DEVICE void operator()(Block block) const {
    const int64_t first = block.index * per_block;
    const int64_t count = fibers - first < per_block ? fibers - first : per_block;
    const int64_t run = o.fiber_dims < o.ndim ? o.sizes[o.fiber_dims] : 1;
    for (int64_t begin = 0; begin < walk; begin += run) {
      block.each(count, [&](int64_t fiber) {
        auto place = Place<1>::origin(o);
        place.follow(o, 0, o.fiber_dims, first + fiber);
        place.follow(o, o.fiber_dims, o.ndim, begin);
        const int d = o.fiber_dims;
        if constexpr (!device::kThreadedBlocks) {
          if (d < o.ndim && place.all_inside<int64_t>(block, o, d, run))
            return unchecked<T, Op, false>(block, o, place, d, run);
        }
        for (int64_t i = 0; i < run; i++) {
          int64_t offset;
          if (place.resolve<int64_t>(o, d, i, offset))
            update<T, Op>(place.to + i * o.to_strides[d] + offset, place.from + i * o.from_strides[d]);
        }
      });
      block.sync();
    }
  }
};

template <class T, class Op>
MB_DEVICE void update_atomically(char* to, const char* from) {
  T* at = reinterpret_cast<T*>(to);
  const T value = *reinterpret_cast<const T*>(from);
  if constexpr (std::is_same_v<Op, Assign>) {
    *at = value;
  } else if constexpr (std::is_same_v<Op, Add> && !std::is_same_v<T, bool>) {
    device::atomic_add(at, value);
  } else {
    device::atomic_update(at, value, Op{});
  }
}

// kByRow: no index varies along dimension 0.
template <class T, class Op, bool kByRow>
struct Everywhere {
  IndexOperands o;
  RowSplit split;
  bool dense;  // both arrays are dense along dimension 0

  MB_DEVICE void operator()(Block block) const {
    const device::RowSpan span = split.span(block.index);
    auto place_of = [&](int64_t row) {
      auto place = Place<1>::origin(o);
      place.follow(o, 1, o.ndim, span.first_row + row);
      if constexpr (kByRow) {
        int64_t offset;
        if (place.resolve<int64_t>(o, 0, 0, offset))
          place.to += offset;
        else
          place.to = nullptr;
      }
      if (place.to != nullptr) place.step(o, 0, span.first_column);
      return place;
    };
    if constexpr (!kByRow) {
      device::each_row(block, span.rows, span.columns, place_of, [&](const Place<1>& place, int64_t c) {
        int64_t offset;
        if (place.resolve<int64_t>(o, 0, c, offset))
          update_atomically<T, Op>(place.to + c * o.to_strides[0] + offset, place.from + c * o.from_strides[0]);
      });
    } else if (dense) {
      device::each_row(block, span.rows, span.columns, place_of, [](const Place<1>& place, int64_t c) {
        const int64_t stride = sizeof(T);
        if (place.to != nullptr) update_atomically<T, Op>(place.to + c * stride, place.from + c * stride);
      });
    } else {
      device::each_row(block, span.rows, span.columns, place_of, [&](const Place<1>& place, int64_t c) {
        if (place.to != nullptr)
          update_atomically<T, Op>(place.to + c * o.to_strides[0], place.from + c * o.from_strides[0]);
      });
    }
  }
};

// Complex products are not one machine word's update.
template <class T, class Op>
constexpr bool kAtomic = std::is_same_v<Op, Assign> || (is_complex<T> ? std::is_same_v<Op, Add> : sizeof(T) <= 8);

template <class T, class Op>
void run(Stream stream, const IndexOperands& o) {
  int64_t fibers = 1, walk = 1, fiber_rows = 1;
  for (int d = 0; d < o.ndim; d++) (d < o.fiber_dims ? fibers : walk) *= o.sizes[d];
  for (int d = 1; d < o.fiber_dims; d++) fiber_rows *= o.sizes[d];
  bool by_row = true;
  for (int k = 0; k < o.count; k++) by_row = by_row && o.index_strides[k][0] == 0;
  const bool along_fibers = o.fiber_dims > 0 && fibers > 1 &&
                            (by_row || walk == 1 || o.index_strides[0][0] <= o.index_strides[0][o.fiber_dims]);
  const bool dense = by_row && o.to_strides[0] == int64_t(sizeof(T)) && o.from_strides[0] == int64_t(sizeof(T));
  if constexpr (kAtomic<T, Op>) {
    const bool whole_rows = std::is_same_v<Op, Assign> && dense;
    if (o.shuffled && (fibers < 4 * kFibers || whole_rows)) {
      const RowSplit split = RowSplit::of(o.numel / o.sizes[0], o.sizes[0], kElements);
      const device::Grid grid{split.blocks(), kThreads, split.elements_per_block()};
      if (by_row) return device::launch(stream, grid, Everywhere<T, Op, true>{o, split, dense});
      return device::launch(stream, grid, Everywhere<T, Op, false>{o, split, false});
    }
  }
  if (along_fibers) {
    const RowSplit split = RowSplit::of(fiber_rows, o.sizes[0], kFibers);
    return device::launch(stream, {split.blocks(), kThreads, split.elements_per_block() * walk},
                          FiberRows<T, Op>{o, split, walk, by_row, dense});
  }
  device::launch(stream, {device::ceil_div(fibers, kFibers), kThreads, kFibers * walk},
                 FiberEach<T, Op>{o, fibers, kFibers, walk});
}

}  // namespace scatter
}  // namespace mybackend::kernels
