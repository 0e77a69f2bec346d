// Graves et al., "Connectionist temporal classification" (ICML 2006): the forward and backward recursions over states
// (equations 6, 7, 10 and 11 there, in logarithms) and the gradient by the log probabilities (equation 16).
//
// A block is one item of the batch; time goes step by step, states are the threads'. The gradient has a block for each
// time of an item. Where a label occurs several times, its first occurrence adds up all of them along a chain of
// followers, so sums have an order and need no atomics. Called by csrc/aten/ctc_loss.cpp. Spec:
// test/ops/test_ctc_loss.py.
#include "csrc/kernels/ctc_loss.h"

#include "csrc/device/errors.h"
#include "csrc/device/numeric.h"
#include "csrc/device/portable.h"

namespace mybackend::kernels {
namespace {

using device::Block;

template <class T>
constexpr T minus_infinity() {
  return -std::numeric_limits<T>::infinity();
}

template <class T>
MB_DEVICE T log_sum(T a, T b, T c) {
  const T larger = a > b ? a : b, peak = larger > c ? larger : c;
  const T base = peak == minus_infinity<T>() ? T(0) : peak;
  return math::log(math::exp(a - base) + math::exp(b - base) + math::exp(c - base)) + base;
}

// The sum over several terms in logarithms: exp(peak) * total.
template <class T>
struct LogTotal {
  T peak, total;
  MB_DEVICE T value() const { return total > T(0) ? math::log(total) + peak : minus_infinity<T>(); }
};
template <class T>
struct AddLogTotals {
  MB_DEVICE LogTotal<T> operator()(LogTotal<T> a, LogTotal<T> b) const {
    if (!(a.total > T(0))) return b;
    if (!(b.total > T(0))) return a;
    return a.peak > b.peak ? LogTotal<T>{a.peak, a.total + b.total * math::exp(b.peak - a.peak)}
                           : LogTotal<T>{b.peak, b.total + a.total * math::exp(a.peak - b.peak)};
  }
};
template <class T>
MB_DEVICE LogTotal<T> log_term(T x) {
  return {x, x == minus_infinity<T>() ? T(0) : T(1)};
}

// One item of the batch.
template <class T, class L>
struct Item {
  CtcLoss a;
  int64_t b, length, states, steps;

  MB_DEVICE Item(const CtcLoss& args, int64_t index)
      : a(args),
        b(index),
        length(args.target_length[index]),
        states(2 * args.target_length[index] + 1),
        steps(args.input_length[index]) {}

  MB_DEVICE int64_t all_states() const { return 2 * a.longest + 1; }
  MB_DEVICE int64_t label(int64_t u) const {
    return int64_t(static_cast<const L*>(a.targets)[a.target_begin[b] + u * a.target_stride]);
  }
  // What a state emits; a label that is no class is the blank here, and reported elsewhere.
  MB_DEVICE int64_t emitted(int64_t state) const {
    if (state % 2 == 0) return a.blank;
    const int64_t value = label(state / 2);
    return value < 0 || value >= a.classes ? a.blank : value;
  }
  MB_DEVICE T log_prob(int64_t t, int64_t c) const {
    return static_cast<const T*>(a.log_probs)[t * a.time_stride + b * a.batch_stride + c * a.class_stride];
  }
  // Whether a path may go from `state` to `state + 2`, leaving out a blank.
  MB_DEVICE bool skips(int64_t state) const {
    return state % 2 == 1 && state + 2 < states && emitted(state) != emitted(state + 2);
  }
};

template <class T, class L>
struct Alpha {
  CtcLoss a;
  T* loss;
  T* log_alpha;

  MB_DEVICE void operator()(Block block) const {
    const Item<T, L> item(a, block.index);
    const int64_t all = item.all_states();
    T* row = log_alpha + block.index * a.time * all;
    block.each(item.length, [&](int64_t u) {
      const int64_t value = item.label(u);
      if (value < 0 || value >= a.classes) device::report(a.errors, device::kTargetOutOfRange, value, a.classes);
    });
    for (int64_t t = 0; t < a.time; t++, row += all) {
      const T* before = row - all;
      T* now = row;
      const bool used = t < item.steps;
      block.each(all, [&](int64_t s) {
        T value = minus_infinity<T>();
        if (used && s < item.states) {
          if (t == 0) {
            if (s < 2) value = item.log_prob(0, item.emitted(s));
          } else {
            const T stay = before[s], step = s > 0 ? before[s - 1] : minus_infinity<T>();
            const T skip = s > 1 && item.skips(s - 2) ? before[s - 2] : minus_infinity<T>();
            value = log_sum(stay, step, skip) + item.log_prob(t, item.emitted(s));
          }
        }
        now[s] = value;
      });
      block.sync();
    }
    const T* last = log_alpha + (block.index * a.time + item.steps - 1) * all;
    block.each(1, [&](int64_t) {
      T likelihood;
      if (item.steps == 0) {
        likelihood = item.length == 0 ? T(0) : minus_infinity<T>();
      } else {
        const T label = item.length > 0 ? last[item.states - 2] : minus_infinity<T>();
        likelihood = log_sum(last[item.states - 1], label, minus_infinity<T>());
      }
      loss[block.index] = -likelihood;
    });
  }
};

template <class T, class L>
struct Beta {
  CtcLoss a;
  T* log_beta;
  int64_t* follower;

  MB_DEVICE void operator()(Block block) const {
    const Item<T, L> item(a, block.index);
    const int64_t all = item.all_states();
    // The next occurrence of the same label, -1 for none; less 2 where an earlier one adds this one up.
    int64_t* next = follower + block.index * a.longest;
    block.each(item.length, [&](int64_t u) {
      const int64_t mine = item.emitted(2 * u + 1);
      int64_t found = -1;
      for (int64_t v = u + 1; v < item.length && found < 0; v++)
        if (item.emitted(2 * v + 1) == mine) found = v;
      bool first = mine != a.blank;
      for (int64_t v = 0; v < u && first; v++) first = item.emitted(2 * v + 1) != mine;
      next[u] = first ? found : -2 - (found + 1);
    });
    T* base = log_beta + block.index * a.time * all;
    for (int64_t t = item.steps - 1; t >= 0; t--) {
      const T* after = base + (t + 1) * all;
      T* now = base + t * all;
      const bool ends = t == item.steps - 1;
      block.each(item.states, [&](int64_t s) {
        T value = minus_infinity<T>();
        const T emitted = item.log_prob(t, item.emitted(s));
        if (ends) {
          if (s >= item.states - 2) value = emitted;
        } else {
          const T stay = after[s], step = s + 1 < item.states ? after[s + 1] : minus_infinity<T>();
          const T skip = item.skips(s) ? after[s + 2] : minus_infinity<T>();
          value = log_sum(stay, step, skip) + emitted;
        }
        now[s] = value;
      });
      block.sync();
    }
  }
};

template <class T, class L>
struct Gradient {
  CtcLoss a;
  const T* grad;
  int64_t grad_stride;
  const T* loss;
  const T* log_alpha;
  const T* log_beta;
  const int64_t* follower;
  bool zero_infinity;
  T* grad_in;

  MB_DEVICE void operator()(Block block) const {
    const int64_t t = block.index / a.batch;
    const Item<T, L> item(a, block.index % a.batch);
    const int64_t all = item.all_states();
    const T* alpha = log_alpha + (item.b * a.time + t) * all;
    const T* beta = log_beta + (item.b * a.time + t) * all;
    const int64_t* next = follower + item.b * a.longest;
    const T scale = grad[item.b * grad_stride], cost = loss[item.b];
    const bool unused = t >= item.steps || (zero_infinity && cost == std::numeric_limits<T>::infinity());
    T* to = grad_in + (t * a.batch + item.b) * a.classes;
    // An infinite loss has no gradient, not even by classes that no path passes through.
    const T absent = cost == std::numeric_limits<T>::infinity() ? std::numeric_limits<T>::quiet_NaN() : scale;
    block.each(a.classes, [&](int64_t c) { to[c] = unused ? T(0) : math::exp(item.log_prob(t, c)) * absent; });
    const int64_t states = unused ? 0 : item.states;
    const LogTotal<T> blanks =
        block.reduce<LogTotal<T>>(states, {T(0), T(0)}, AddLogTotals<T>{}, [&](int64_t s) -> LogTotal<T> {
          if (item.emitted(s) != a.blank) return {T(0), T(0)};
          return log_term(alpha[s] + beta[s]);
        });
    block.sync();
    const auto settle = [=](int64_t c, T sum) {
      const T p = item.log_prob(t, c);
      to[c] = (math::exp(p) - math::exp(sum + cost - p)) * scale;
    };
    block.each(unused ? 0 : 1, [&](int64_t) { settle(a.blank, blanks.value()); });
    block.each(states / 2, [&](int64_t u) {
      if (next[u] < -1) return;
      LogTotal<T> total{T(0), T(0)};
      for (int64_t v = u; v >= 0;) {
        total = AddLogTotals<T>{}(total, log_term(alpha[2 * v + 1] + beta[2 * v + 1]));
        const int64_t link = next[v];
        v = link < -1 ? -2 - link - 1 : link;
      }
      settle(item.emitted(2 * u + 1), total.value());
    });
  }
};

// Calls f(Type<number>, Type<label>).
template <class F>
void visit_types(const CtcLoss& args, const char* name, F f) {
  visit<Floats>(args.dtype, name, [&](auto type) {
    visit<Types<int64_t, int32_t>>(args.target_dtype, name, [&](auto label) { f(type, label); });
  });
}

int threads_for(int64_t n) {
  return n <= 32 ? 32 : n <= 64 ? 64 : n <= 128 ? 128 : 256;
}

}  // namespace

MB_DEFINE_KERNEL(ctc_loss, (Stream stream, const CtcLoss& args, void* loss, void* log_alpha)) {
  visit_types(args, "ctc_loss", [&](auto type, auto label) {
    using T = typename decltype(type)::type;
    using L = typename decltype(label)::type;
    const int64_t states = 2 * args.longest + 1;
    device::launch(stream, {args.batch, threads_for(states), 16 * args.time * states},
                   Alpha<T, L>{args, static_cast<T*>(loss), static_cast<T*>(log_alpha)});
  });
}

MB_DEFINE_KERNEL(ctc_loss_backward,
                 (Stream stream, const CtcLoss& args, const void* grad, int64_t grad_stride, const void* loss,
                  const void* log_alpha, bool zero_infinity, void* log_beta, int64_t* follower, void* grad_in)) {
  visit_types(args, "ctc_loss_backward", [&](auto type, auto label) {
    using T = typename decltype(type)::type;
    using L = typename decltype(label)::type;
    const int64_t states = 2 * args.longest + 1;
    device::launch(stream, {args.batch, threads_for(states), 16 * args.time * states},
                   Beta<T, L>{args, static_cast<T*>(log_beta), follower});
    device::launch(stream, {args.time * args.batch, threads_for(args.classes), args.classes + 16 * states},
                   Gradient<T, L>{args, static_cast<const T*>(grad), grad_stride, static_cast<const T*>(loss),
                                  static_cast<const T*>(log_alpha), static_cast<const T*>(log_beta), follower,
                                  zero_infinity, static_cast<T*>(grad_in)});
  });
}

}  // namespace mybackend::kernels
