// The framework of cumulative operations: run_scan(stream, scan, workspace, op).
//
//   rows      one block takes a line; its elements lie along the fast dimension
//   columns   one block takes up to kStrip neighbouring lines side by side
//   parts     where that makes too few blocks, lines are cut into parts: totals of all parts first, then what each part
//             starts from, then the parts themselves
// The cut depends on shapes only, so results do not depend on the number of CPU threads.
#pragma once

#include "csrc/device/scan.h"

namespace mybackend::kernels {

using device::Block;
using device::Stream;

struct ScanPlan {
  bool columns;
  int64_t strips;
  int64_t parts, part;
};

inline ScanPlan plan_scan(const Scan& s, bool associative) {
  constexpr int64_t kEnoughBlocks = 64, kPartWork = 65536, kNarrow = 16, kShort = 32;
  const int64_t size = size_of(s.in_dtype);
  ScanPlan plan{false, 1, 1, s.n};
  if (s.kept > 0)
    plan.columns = (s.kept_stride[0] == size && s.in_stride != size && s.kept_size[0] >= kNarrow) ||
                   (s.n < kShort && s.kept_size[0] >= kShort);
  int64_t blocks = s.lines;
  if (plan.columns) {
    plan.strips = device::ceil_div(s.kept_size[0], device::kStrip);
    blocks = plan.strips * (s.lines / s.kept_size[0]);
  }
  if (associative && blocks < kEnoughBlocks && s.n * s.lines > 2 * kPartWork) {
    const int64_t wanted = 4 * kEnoughBlocks / blocks, worth = s.n * s.lines / (kPartWork * blocks);
    const int64_t parts = wanted < worth ? wanted : worth;
    if (parts > 1) {
      plan.part = device::ceil_div(s.n, parts);
      plan.parts = device::ceil_div(s.n, plan.part);
    }
  }
  return plan;
}

// One pass over the elements. `carry[part][line]` is what a part starts from; the pass that does not write leaves each
// part's total there. A null carry is the identity everywhere.
template <class Op, class Stored>
struct ScanLines {
  Scan s;
  ScanPlan plan;
  Op op;
  typename Op::Acc* carry;
  bool write;

  MB_DEVICE void operator()(Block block) const {
    using Acc = typename Op::Acc;
    int64_t rest = block.index;
    const int64_t part = rest % plan.parts;
    rest /= plan.parts;
    const int64_t begin = part * plan.part, end = begin + plan.part < s.n ? begin + plan.part : s.n;
    if (plan.columns) {
      MB_SHARED(block, Acc, start, device::kStrip);
      const int64_t first = rest % plan.strips * device::kStrip, left = s.kept_size[0] - first;
      const int64_t width = left < device::kStrip ? left : device::kStrip;
      const int64_t line = rest / plan.strips * s.kept_size[0] + first;
      Acc* const kept = carry == nullptr ? nullptr : carry + part * s.lines + line;
      block.each(width, [&](int64_t i) { start[i] = kept == nullptr || !write ? op.identity() : kept[i]; });
      block.sync();
      device::scan_columns<Op, Stored>(block, op, s, in(line), out(line, 0), out(line, 1), width, begin, end, start,
                                       write);
      block.sync();
      if (!write) block.each(width, [&](int64_t i) { kept[i] = start[i]; });
    } else {
      const int64_t line = rest;
      Acc* const kept = carry == nullptr ? nullptr : carry + part * s.lines + line;
      const Acc start = kept == nullptr || !write ? op.identity() : *kept;
      const Acc total =
          device::scan_row<Op, Stored>(block, op, s, in(line), out(line, 0), out(line, 1), begin, end, start, write);
      if (!write && block.thread == 0) *kept = total;
    }
  }

  MB_DEVICE const char* in(int64_t line) const {
    return s.in + device::offset_of(line, s.kept, s.kept_size, s.kept_stride);
  }
  MB_DEVICE char* out(int64_t line, int k) const {
    return s.out[k] + device::offset_of(line, s.kept, s.kept_size, s.kept_out_stride[k]);
  }
};

// From totals of parts to what each part starts from.
template <class Op>
struct ScanCarries {
  Op op;
  typename Op::Acc* carry;
  int64_t parts, lines;

  MB_DEVICE void operator()(Block block) const {
    constexpr int64_t kLines = 128;
    const int64_t first = block.index * kLines, left = lines - first;
    block.each(left < kLines ? left : kLines, [&](int64_t i) {
      auto acc = op.identity();
      for (int64_t p = 0; p < parts; p++) {
        auto& slot = carry[p * lines + first + i];
        const auto next = op.combine(acc, slot);
        slot = acc;
        acc = next;
      }
    });
  }
};

template <class Op>
void run_scan(Stream stream, const Scan& s, const Workspace& workspace, Op op) {
  using Acc = typename Op::Acc;
  if (s.n * s.lines == 0) return;
  const ScanPlan plan = plan_scan(s, Op::chains);
  Acc* carry = nullptr;
  if (plan.parts > 1)
    carry = reinterpret_cast<Acc*>(workspace.take(workspace.context, plan.parts * s.lines * int64_t(sizeof(Acc))));
  device::visit_stored<typename Op::Input>(s.in_dtype, [&](auto stored) {
    using Stored = typename decltype(stored)::type;
    const int64_t width = plan.columns ? (s.kept_size[0] < device::kStrip ? s.kept_size[0] : device::kStrip) : 1;
    const int64_t groups = plan.columns ? plan.strips * (s.lines / s.kept_size[0]) : s.lines;
    const int threads = plan.columns ? int(width) : plan.part <= 64 ? 32 : plan.part <= 1024 ? 128 : 512;
    const device::Grid grid{plan.parts * groups, threads, plan.part * width};
    if (carry != nullptr) {
      device::launch(stream, grid, ScanLines<Op, Stored>{s, plan, op, carry, false});
      device::launch(stream, {device::ceil_div(s.lines, 128), 128, 128 * plan.parts},
                     ScanCarries<Op>{op, carry, plan.parts, s.lines});
    }
    device::launch(stream, grid, ScanLines<Op, Stored>{s, plan, op, carry, true});
  });
}

}  // namespace mybackend::kernels
