// multi_margin_loss: sum over classes i other than the target y of max(0, margin - x[y] + x[i])^p, over the number of
// classes. multilabel_margin_loss: sum over targets k and other classes i of max(0, 1 - x[k] + x[i]), over the same.
//
// A block is one row. Called by csrc/aten/margin_loss.cpp. Spec: test/ops/test_loss.py.
#include "csrc/kernels/margin_loss.h"

#include <algorithm>

#include "csrc/device/errors.h"
#include "csrc/device/portable.h"
#include "csrc/device/widen.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::narrow;
using device::widen;

template <class S>
struct MultiRow {
  using A = Compute<S>;
  MultiMargin a;

  MB_DEVICE const S* scores(int64_t row) const { return static_cast<const S*>(a.scores) + row * a.classes; }
  // -1 for a target that is no class, which every thread sees and one reports.
  MB_DEVICE int64_t target(Block block) const {
    const int64_t value = a.target[block.index];
    if (value >= 0 && value < a.classes) return value;
    block.each(1, [&](int64_t) { device::report(a.errors, device::kTargetOutOfRange, value, a.classes); });
    return -1;
  }
  MB_DEVICE A weight(int64_t target) const {
    return a.weight == nullptr ? A(1) : A(widen(static_cast<const S*>(a.weight)[target]));
  }
};

template <class S>
struct MultiForward : MultiRow<S> {
  using A = Compute<S>;
  A* loss;
  MultiForward(const MultiMargin& args, A* to) : MultiRow<S>{args}, loss(to) {}

  MB_DEVICE void operator()(Block block) const {
    const S* x = this->scores(block.index);
    const int64_t y = this->target(block);
    const A bound = A(this->a.margin) - A(widen(x[y < 0 ? 0 : y]));
    const bool square = this->a.p == 2;
    const A sum = block.sum<A>(this->a.classes, [=](int64_t i) {
      const A z = bound + A(widen(x[i]));
      const A term = square ? z * z : z;
      return z > A(0) && i != y ? term : A(0);
    });
    block.each(1, [&](int64_t) { loss[block.index] = y < 0 ? A(0) : sum * this->weight(y) / A(this->a.classes); });
  }
};

template <class S>
struct MultiBackward : MultiRow<S> {
  using A = Compute<S>;
  const S* grad;
  int64_t grad_stride;
  A scale;
  S* grad_in;
  MultiBackward(const MultiMargin& args, const S* from, int64_t stride, A by, S* to)
      : MultiRow<S>{args}, grad(from), grad_stride(stride), scale(by), grad_in(to) {}

  MB_DEVICE void operator()(Block block) const {
    const S* x = this->scores(block.index);
    S* to = grad_in + block.index * this->a.classes;
    const int64_t y = this->target(block);
    const A bound = A(this->a.margin) - A(widen(x[y < 0 ? 0 : y]));
    const A g = y < 0 ? A(0) : scale * this->weight(y) * A(widen(grad[block.index * grad_stride]));
    const bool square = this->a.p == 2;
    const auto slope = [=](int64_t i) {
      const A z = bound + A(widen(x[i]));
      return z > A(0) && i != y ? (square ? 2 * z * g : g) : A(0);
    };
    const A sum = block.sum<A>(this->a.classes, slope);
    block.each(this->a.classes, [=](int64_t i) { to[i] = narrow<S>(i == y ? -sum : slope(i)); });
  }
};

struct Least {
  MB_DEVICE int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};

template <class S>
struct LabelRow {
  using A = Compute<S>;
  MultilabelMargin a;

  MB_DEVICE const S* scores(int64_t row) const { return static_cast<const S*>(a.scores) + row * a.classes; }
  MB_DEVICE const int64_t* targets(int64_t row) const { return a.target + row * a.classes; }
  // How many targets the row has: those before the first that is negative, or no class.
  MB_DEVICE int64_t count(Block block) const {
    const int64_t* t = targets(block.index);
    const int64_t classes = a.classes;
    return block.reduce<int64_t>(classes, classes, Least{},
                                 [=](int64_t i) { return t[i] < 0 || t[i] >= classes ? i : classes; });
  }
  MB_DEVICE static A hinge(A of_target, A of_other) { return A(1) - of_target + of_other; }
};

template <class S>
struct LabelForward : LabelRow<S> {
  using A = Compute<S>;
  A* loss;
  S* is_target;
  LabelForward(const MultilabelMargin& args, A* to, S* mask) : LabelRow<S>{args}, loss(to), is_target(mask) {}

  MB_DEVICE void operator()(Block block) const {
    const S* x = this->scores(block.index);
    const int64_t *t = this->targets(block.index), classes = this->a.classes, count = this->count(block);
    S* mask = is_target + block.index * classes;
    block.each(1, [&](int64_t) {
      if (count < classes && t[count] >= classes)
        device::report(this->a.errors, device::kTargetOutOfRange, t[count], classes);
    });
    block.each(classes, [=](int64_t i) {
      bool found = false;
      for (int64_t k = 0; k < count; k++) found = found || t[k] == i;
      mask[i] = narrow<S>(found ? A(1) : A(0));
    });
    block.sync();
    const A sum = block.sum<A>(classes, [=](int64_t i) {
      if (A(widen(mask[i])) != A(0)) return A(0);
      A terms = A(0);
      for (int64_t k = 0; k < count; k++) {
        const A z = LabelRow<S>::hinge(A(widen(x[t[k]])), A(widen(x[i])));
        terms += z > A(0) ? z : A(0);
      }
      return terms;
    });
    block.each(1, [&](int64_t) { loss[block.index] = sum / A(classes); });
  }
};

template <class S>
struct LabelBackward : LabelRow<S> {
  using A = Compute<S>;
  const S* is_target;
  const S* grad;
  int64_t grad_stride;
  A scale;
  S* grad_in;
  LabelBackward(const MultilabelMargin& args, const S* mask, const S* from, int64_t stride, A by, S* to)
      : LabelRow<S>{args}, is_target(mask), grad(from), grad_stride(stride), scale(by), grad_in(to) {}

  MB_DEVICE void operator()(Block block) const {
    const S* x = this->scores(block.index);
    const int64_t *t = this->targets(block.index), classes = this->a.classes, count = this->count(block);
    const S* mask = is_target + block.index * classes;
    S* to = grad_in + block.index * classes;
    const A g = scale * A(widen(grad[block.index * grad_stride]));
    block.each(classes, [=](int64_t i) {
      const A mine = A(widen(x[i]));
      int64_t pairs = 0, times = -1;
      if (A(widen(mask[i])) == A(0)) {  // one pair with each target
        for (int64_t k = 0; k < count; k++) pairs += LabelRow<S>::hinge(A(widen(x[t[k]])), mine) > A(0);
        times = 1;
      } else {  // one with each other class, for every time that it is named
        for (int64_t k = 0; k < classes; k++)
          pairs += A(widen(mask[k])) == A(0) && LabelRow<S>::hinge(mine, A(widen(x[k]))) > A(0);
        times = 0;
        for (int64_t k = 0; k < count; k++) times -= t[k] == i;
      }
      to[i] = narrow<S>(A(pairs * times) * g);
    });
  }
};

int threads_for(int64_t classes) {
  return int(std::min<int64_t>(256, std::max<int64_t>(32, device::ceil_div(classes, 32) * 32)));
}

}  // namespace

MB_DEFINE_KERNEL(multi_margin_loss, (Stream stream, const MultiMargin& args, void* loss)) {
  visit<Join<Floats, Halves>>(args.dtype, "multi_margin_loss", [&](auto type) {
    using S = typename decltype(type)::type;
    device::launch(stream, {args.rows, threads_for(args.classes), args.classes},
                   MultiForward<S>(args, static_cast<Compute<S>*>(loss)));
  });
}

MB_DEFINE_KERNEL(multi_margin_loss_backward, (Stream stream, const MultiMargin& args, const void* grad,
                                              int64_t grad_stride, double scale, void* grad_in)) {
  visit<Join<Floats, Halves>>(args.dtype, "multi_margin_loss_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    device::launch(
        stream, {args.rows, threads_for(args.classes), 2 * args.classes},
        MultiBackward<S>(args, static_cast<const S*>(grad), grad_stride, Compute<S>(scale), static_cast<S*>(grad_in)));
  });
}

MB_DEFINE_KERNEL(multilabel_margin_loss, (Stream stream, const MultilabelMargin& args, void* loss, void* is_target)) {
  visit<Join<Floats, Halves>>(args.dtype, "multilabel_margin_loss", [&](auto type) {
    using S = typename decltype(type)::type;
    device::launch(stream, {args.rows, threads_for(args.classes), args.classes * args.classes},
                   LabelForward<S>(args, static_cast<Compute<S>*>(loss), static_cast<S*>(is_target)));
  });
}

MB_DEFINE_KERNEL(multilabel_margin_loss_backward,
                 (Stream stream, const MultilabelMargin& args, const void* is_target, const void* grad,
                  int64_t grad_stride, double scale, void* grad_in)) {
  visit<Join<Floats, Halves>>(args.dtype, "multilabel_margin_loss_backward", [&](auto type) {
    using S = typename decltype(type)::type;
    device::launch(stream, {args.rows, threads_for(args.classes), args.classes * args.classes},
                   LabelBackward<S>(args, static_cast<const S*>(is_target), static_cast<const S*>(grad), grad_stride,
                                    Compute<S>(scale), static_cast<S*>(grad_in)));
  });
}

}  // namespace mybackend::kernels
