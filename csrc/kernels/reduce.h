// The framework every reduction is made of: run_reduction(stream, reduction, workspace, op).
//
// An operation is a struct:
//   Input, Acc                  the type elements are read as; the accumulator, a One, Two or Three (fold.h)
//   positions                   whether `term` looks at the position, e.g. to return it
//   identity(), combine(a, b)   a commutative monoid over Acc
//   term(x, position)           one element
//   quad(x0, x1, x2, x3, p)     four elements at positions p to p + 3
//   absorb(block, acc, n, p, x) a collective: acc and elements x[0..n) at positions p, ...
//   settled(acc)                optional: no further element can change it
//   store(reduction, out0, out1, acc)
//
// How the work is cut depends on shapes only, never on the number of CPU threads, so results do not either:
//   rows      one block folds one output; the elements of a row lie along the fast dimension
//   columns   one block folds up to kStrip neighbouring outputs, row after row; few narrow columns of a dense array are
//             first folded as if `group` rows lay side by side
//   parts     where that makes too few blocks, the reduced positions are cut into parts whose accumulators go to the
//             workspace; a second launch combines them, in order
#pragma once

#include "csrc/device/fold.h"

namespace mybackend::kernels {

using device::Block;
using device::Stream;

struct ReductionPlan {
  bool columns;
  int64_t group;   // rows of the array that are folded side by side; 1 unless `columns`
  int64_t tail;    // columns with one more row after the last full group
  int64_t strips;  // strips in a row of columns
  int64_t parts, part;
};

inline ReductionPlan plan_reduction(Reduction& r, bool positions) {
  constexpr int64_t kFewBlocks = 256, kEnoughBlocks = 512, kPartWork = 16384, kNarrow = 16, kShort = 32;
  ReductionPlan plan{false, 1, 0, 1, 1, r.count};
  const int64_t size = size_of(r.in_dtype);
  const bool dense = r.kept == 1 && r.reduced == 1 && r.kept_stride[0] == size &&
                     r.reduced_stride[0] == r.kept_size[0] * size && r.count >= kShort;
  if (r.kept > 0) {
    const bool along_columns = r.kept_stride[0] == size && !(r.reduced > 0 && r.reduced_stride[0] == size);
    plan.columns = (along_columns && (r.kept_size[0] >= kNarrow || (dense && !positions))) ||
                   (r.count < kShort && r.kept_size[0] >= kShort);
  }
  int64_t blocks = r.outputs;
  if (plan.columns) {
    // Not worth a second launch where there is little to fold and columns are wide enough to be folded as they are.
    const bool little = r.count * r.outputs <= kPartWork && r.kept_size[0] >= kNarrow;
    if (dense && !positions && !little && r.kept_size[0] * 4 <= device::kStrip) {
      plan.group = device::kStrip / r.kept_size[0];
      plan.tail = r.count % plan.group * r.kept_size[0];
      r.outputs *= plan.group;
      r.kept_size[0] *= plan.group;
      r.reduced_stride[0] *= plan.group;
      r.reduced_size[0] = r.count = r.count / plan.group;
      plan.part = r.count;
    }
    plan.strips = device::ceil_div(r.kept_size[0], device::kStrip);
    blocks = plan.strips * (r.outputs / r.kept_size[0]);
  }
  const int64_t work = r.count * r.outputs;
  if (blocks < kFewBlocks && work > 2 * kPartWork) {
    const int64_t wanted = device::ceil_div(kEnoughBlocks, blocks), worth = work / (kPartWork * blocks);
    const int64_t parts = wanted < worth ? wanted : worth;
    if (parts > 1) {
      plan.part = device::ceil_div(device::ceil_div(r.count, parts), 16) * 16;
      plan.parts = device::ceil_div(r.count, plan.part);
    }
  }
  return plan;
}

template <class Op, class Stored>
struct ReduceRows {
  Reduction r;
  ReductionPlan plan;
  Op op;
  typename Op::Acc* partial;

  MB_DEVICE void operator()(Block block) const {
    const int64_t output = block.index / plan.parts, part = block.index - output * plan.parts;
    const char* base = r.in + device::offset_of(output, r.kept, r.kept_size, r.kept_stride);
    const int64_t begin = part * plan.part, end = begin + plan.part < r.count ? begin + plan.part : r.count;
    device::RowReader<typename Op::Input, Stored> reader;
    constexpr int kChain = 32;  // chunks before a new accumulator is begun
    typename Op::Acc total = op.identity(), earlier = total;
    int64_t chunks = 0;
    for (int64_t p = begin; p < end;) {
      const int64_t n = reader.longest(r, end - p);
      total = op.absorb(block, total, n, p, reader.read(r, base, p, n));
      p += n;
      if constexpr (requires { op.settled(total); }) {
        if (op.settled(total)) break;
      }
      if (++chunks % kChain == 0) {
        earlier = op.combine(earlier, total);
        total = op.identity();
      }
    }
    if (chunks >= kChain) total = op.combine(earlier, total);
    if (block.thread != 0) return;
    if (partial != nullptr)
      partial[part * r.outputs + output] = total;
    else
      op.store(r, r.out[0] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[0]),
               r.out[1] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[1]), total);
  }
};

template <class Op, class Stored>
struct ReduceColumns {
  Reduction r;
  ReductionPlan plan;
  Op op;
  typename Op::Acc* partial;

  MB_DEVICE void operator()(Block block) const {
    using Acc = typename Op::Acc;
    int64_t rest = block.index;
    const int64_t part = rest % plan.parts;
    rest /= plan.parts;
    const int64_t first = rest % plan.strips * device::kStrip;
    const int64_t outer = rest / plan.strips;
    const int64_t left = r.kept_size[0] - first, width = left < device::kStrip ? left : device::kStrip;
    const int64_t begin = part * plan.part, end = begin + plan.part < r.count ? begin + plan.part : r.count;
    const int64_t output = outer * r.kept_size[0] + first;
    const char* base = r.in + device::offset_of(output, r.kept, r.kept_size, r.kept_stride);
    auto row = [&](int64_t p) { return base + device::offset_of(p, r.reduced, r.reduced_size, r.reduced_stride); };
    auto fold = [&](auto done) {
      device::fold_columns<Op, Stored>(block, op, r.in_dtype, width, r.kept_stride[0], begin, end, row, done);
    };
    if (partial != nullptr) {
      const int64_t tail = part + 1 == plan.parts ? plan.tail - first : 0;
      fold([&](int64_t i, Acc acc) {
        if (i < tail)
          acc = op.combine(acc, op.term(device::read_one<typename Op::Input, Stored>(
                                            row(r.count) + i * r.kept_stride[0], r.in_dtype),
                                        r.count));
        partial[part * r.outputs + output + i] = acc;
      });
    } else {
      char* out0 = r.out[0] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[0]);
      char* out1 = r.out[1] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[1]);
      fold([&](int64_t i, Acc acc) { op.store(r, out0 + i * r.out_stride[0][0], out1 + i * r.out_stride[1][0], acc); });
    }
  }
};

// Combines partial[part][output]. Many outputs are taken side by side, few each by a block of their own.
template <class Op>
struct CombineParts {
  Reduction r;
  Op op;
  const typename Op::Acc* partial;
  int64_t parts;
  bool side_by_side;

  MB_DEVICE void operator()(Block block) const {
    using Acc = typename Op::Acc;
    auto store = [&](int64_t output, Acc acc) {
      op.store(r, r.out[0] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[0]),
               r.out[1] + device::offset_of(output, r.kept, r.kept_size, r.out_stride[1]), acc);
    };
    if (side_by_side) {
      const int64_t first = block.index * device::kStrip, left = r.outputs - first;
      device::fold_partials(
          block, op, left < device::kStrip ? left : device::kStrip, parts,
          [&](int64_t p, int64_t i) { return partial[p * r.outputs + first + i]; },
          [&](int64_t i, Acc acc) { store(first + i, acc); });
    } else {
      const int64_t output = block.index;
      const Acc acc =
          device::fold_accumulators(block, op, parts, [&](int64_t p) { return partial[p * r.outputs + output]; });
      if (block.thread == 0) store(output, acc);
    }
  }
};

template <class Op>
void run_reduction(Stream stream, const Reduction& given, const Workspace& workspace, Op op) {
  using Acc = typename Op::Acc;
  if (given.outputs == 0) return;
  Reduction r = given;
  const ReductionPlan plan = plan_reduction(r, Op::positions);
  const bool staged = plan.parts > 1 || plan.group > 1;
  Acc* partial = nullptr;
  if (staged)
    partial = reinterpret_cast<Acc*>(workspace.take(workspace.context, plan.parts * r.outputs * int64_t(sizeof(Acc))));
  device::visit_folded<typename Op::Input>(r.in_dtype, [&](auto stored) {
    using Stored = typename decltype(stored)::type;
    if (plan.columns) {
      const int64_t width = r.kept_size[0] < device::kStrip ? r.kept_size[0] : device::kStrip;
      const int64_t blocks = plan.parts * plan.strips * (r.outputs / r.kept_size[0]);
      device::launch(stream, {blocks, int(width), plan.part * width}, ReduceColumns<Op, Stored>{r, plan, op, partial});
    } else {
      const int threads = plan.part <= 1024 ? 32 : plan.part <= 4096 ? 128 : 256;
      device::launch(stream, {plan.parts * r.outputs, threads, plan.part},
                     ReduceRows<Op, Stored>{r, plan, op, partial});
    }
  });
  if (!staged) return;
  const int64_t parts = plan.parts * plan.group;
  const bool side_by_side = given.outputs >= 16;
  const int64_t blocks = side_by_side ? device::ceil_div(given.outputs, device::kStrip) : given.outputs;
  const int threads = side_by_side ? 128 : parts <= 64 ? 32 : 128;
  const int64_t work = parts * (side_by_side ? device::kStrip : 1);
  device::launch(stream, {blocks, threads, work}, CombineParts<Op>{given, op, partial, parts, side_by_side});
}

}  // namespace mybackend::kernels
