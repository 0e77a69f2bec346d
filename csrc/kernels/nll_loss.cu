// Negative log likelihood and its gradient.
//
// With a reduction, a block adds up a piece of the targets and a last block adds the pieces in order. The gradient is
// written densely: along classes when they are the fast dimension, across targets when those are (s > 1).
// Called by csrc/aten/loss.cpp. Spec: test/ops/test_loss.py.
#include "csrc/kernels/nll_loss.h"

#include <algorithm>

#include "csrc/device/errors.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

constexpr int kTargetsPerBlock = 1024;
constexpr int kLanes = 128;

template <class A>
struct Totals {
  A loss, weight;
};

template <class A>
struct AddTotals {
  MB_DEVICE Totals<A> operator()(Totals<A> a, Totals<A> b) const { return {a.loss + b.loss, a.weight + b.weight}; }
};

// What kernels know of a target. `class_of` is -1 for a target that takes no part.
template <class S, class T>
struct Targets {
  using A = Compute<S>;
  int64_t n, c, s, ignore;
  const T* target;
  const S* weight;
  device::ErrorRecord* errors;

  Targets(const NllLossArgs& args, device::ErrorRecord* record)
      : n(args.n),
        c(args.c),
        s(args.s),
        ignore(args.ignore),
        target(static_cast<const T*>(args.target)),
        weight(static_cast<const S*>(args.weight)),
        errors(record) {}

  MB_DEVICE int64_t class_of(int64_t i) const {
    const int64_t value = int64_t(target[i]);
    if (value == ignore) return -1;
    if (value < 0 || value >= c) {
      device::report(errors, device::kTargetOutOfRange, value, c);
      return -1;
    }
    return value;
  }
  MB_DEVICE A weight_of(int64_t value) const { return weight == nullptr ? A(1) : A(widen(weight[value])); }
  MB_DEVICE int64_t position(int64_t i, int64_t value) const {
    return s == 1 ? i * c + value : (i / s * c + value) * s + i % s;
  }
};

template <class S, class T>
struct EachLoss {
  using A = Compute<S>;
  Targets<S, T> targets;
  const S* scores;
  S* loss;

  MB_DEVICE void operator()(Block block) const {
    const int64_t begin = block.index * kTargetsPerBlock, rest = targets.n * targets.s - begin;
    block.each(rest < kTargetsPerBlock ? rest : kTargetsPerBlock, [&](int64_t k) {
      const int64_t i = begin + k, value = targets.class_of(i);
      loss[i] = value < 0 ? narrow<S>(A(0))
                          : narrow<S>(-targets.weight_of(value) * A(widen(scores[targets.position(i, value)])));
    });
  }
};

template <class S>
MB_DEVICE void finish(Block block, const Totals<Compute<S>>& totals, bool mean, S* loss, S* total_weight) {
  block.each(1, [&](int64_t) {
    *loss = narrow<S>(mean ? totals.loss / totals.weight : totals.loss);
    *total_weight = narrow<S>(totals.weight);
  });
}

template <class S, class T>
struct SumPiece {
  using A = Compute<S>;
  Targets<S, T> targets;
  const S* scores;
  bool mean;
  int64_t pieces;
  Totals<A>* workspace;
  S* loss;
  S* total_weight;

  MB_DEVICE void operator()(Block block) const {
    const int64_t count = targets.n * targets.s;
    const int64_t begin = count * block.index / pieces, end = count * (block.index + 1) / pieces;
    const Totals<A> totals = block.reduce<Totals<A>>(end - begin, {A(0), A(0)}, AddTotals<A>{}, [&](int64_t k) {
      const int64_t i = begin + k, value = targets.class_of(i);
      if (value < 0) return Totals<A>{A(0), A(0)};
      const A weight = targets.weight_of(value);
      return Totals<A>{-weight * A(widen(scores[targets.position(i, value)])), weight};
    });
    if (pieces == 1) return finish<S>(block, totals, mean, loss, total_weight);
    block.each(1, [&](int64_t) { workspace[block.index] = totals; });
  }
};

template <class S>
struct AddPieces {
  using A = Compute<S>;
  const Totals<A>* workspace;
  int64_t pieces;
  bool mean;
  S* loss;
  S* total_weight;

  MB_DEVICE void operator()(Block block) const {
    const Totals<A> totals =
        block.reduce<Totals<A>>(pieces, {A(0), A(0)}, AddTotals<A>{}, [&](int64_t i) { return workspace[i]; });
    finish<S>(block, totals, mean, loss, total_weight);
  }
};

// The gradient of one score: -weight * grad, over the total weight for a mean.
template <class S, class T>
struct Gradient {
  using A = Compute<S>;
  Targets<S, T> targets;
  LossReduction reduction;
  const S* grad;
  const S* total_weight;

  MB_DEVICE A of(int64_t i, int64_t value) const {
    if (value < 0) return A(0);
    const A g = A(widen(grad[reduction == LossReduction::None ? i : 0]));
    const A down = reduction == LossReduction::Mean ? A(widen(*total_weight)) : A(1);
    return -targets.weight_of(value) * g / down;
  }
};

// s == 1: a block a target.
template <class S, class T>
struct BackwardRows {
  Gradient<S, T> gradient;
  S* grad_in;

  MB_DEVICE void operator()(Block block) const {
    const int64_t value = gradient.targets.class_of(block.index), c = gradient.targets.c;
    const S at_target = narrow<S>(gradient.of(block.index, value)), zero = narrow<S>(Compute<S>(0));
    S* row = grad_in + block.index * c;
    block.each(c, [&](int64_t i) { row[i] = i == value ? at_target : zero; });
  }
};

// s > 1: a block a strip of neighbouring targets.
template <class S, class T>
struct BackwardStrips {
  Gradient<S, T> gradient;
  S* grad_in;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, S, at_target, kLanes);
    MB_SHARED(block, int64_t, value, kLanes);
    const int64_t c = gradient.targets.c, s = gradient.targets.s, strips = device::ceil_div(s, kLanes);
    const int64_t n = block.index / strips, first = block.index % strips * kLanes;
    const int64_t width = s - first < kLanes ? s - first : kLanes;
    const S zero = narrow<S>(Compute<S>(0));
    block.each(width, [&](int64_t i) {
      const int64_t target = n * s + first + i;
      value[i] = gradient.targets.class_of(target);
      at_target[i] = narrow<S>(gradient.of(target, value[i]));
    });
    for (int64_t k = 0; k < c; k++) {
      S* row = grad_in + (n * c + k) * s + first;
      block.each(width, [&](int64_t i) { row[i] = value[i] == k ? at_target[i] : zero; });
    }
  }
};

// Calls f(Type<score>, Type<target>).
template <class F>
void visit_types(const NllLossArgs& args, const char* op, F f) {
  visit<Join<Floats, Halves>>(args.dtype, op, [&](auto type) {
    visit<Types<int64_t, uint8_t>>(args.target_dtype, op, [&](auto target) { f(type, target); });
  });
}

}  // namespace

MB_DEFINE_KERNEL(nll_loss, (Stream stream, const NllLossArgs& args, const void* scores, void* loss, void* total_weight,
                            void* workspace, ErrorRecord* errors)) {
  visit_types(args, "nll_loss", [&](auto type, auto target) {
    using S = typename decltype(type)::type;
    using T = typename decltype(target)::type;
    using A = Compute<S>;
    const Targets<S, T> targets(args, errors);
    const S* x = static_cast<const S*>(scores);
    S* y = static_cast<S*>(loss);
    S* total = static_cast<S*>(total_weight);
    const int64_t count = args.n * args.s;
    if (args.reduction == LossReduction::None)
      return device::launch(stream, {device::ceil_div(count, kTargetsPerBlock), 256, 8 * kTargetsPerBlock},
                            EachLoss<S, T>{targets, x, y});
    const bool mean = args.reduction == LossReduction::Mean;
    const int64_t pieces = nll_loss_pieces(count);
    Totals<A>* lines = static_cast<Totals<A>*>(workspace);
    device::launch(stream, {pieces, 256, 8 * device::ceil_div(count, pieces)},
                   SumPiece<S, T>{targets, x, mean, pieces, lines, y, total});
    if (pieces > 1) device::launch(stream, {1, 256, pieces}, AddPieces<S>{lines, pieces, mean, y, total});
  });
}

MB_DEFINE_KERNEL(nll_loss_backward, (Stream stream, const NllLossArgs& args, const void* grad, const void* total_weight,
                                     void* grad_in, ErrorRecord* errors)) {
  visit_types(args, "nll_loss_backward", [&](auto type, auto target) {
    using S = typename decltype(type)::type;
    using T = typename decltype(target)::type;
    const Gradient<S, T> gradient{Targets<S, T>(args, errors), args.reduction, static_cast<const S*>(grad),
                                  static_cast<const S*>(total_weight)};
    S* gx = static_cast<S*>(grad_in);
    if (args.s == 1) {
      const int threads = int(std::min<int64_t>(256, std::max<int64_t>(32, device::ceil_div(args.c, 4))));
      return device::launch(stream, {args.n, threads, args.c}, BackwardRows<S, T>{gradient, gx});
    }
    device::launch(stream, {args.n * device::ceil_div(args.s, kLanes), kLanes, args.c * kLanes},
                   BackwardStrips<S, T>{gradient, gx});
  });
}

}  // namespace mybackend::kernels
