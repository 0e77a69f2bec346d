// One step of Adam, AdamW, SGD and Adagrad over lists of tensors: everything an element needs is read and written once.
//
// half and bfloat16 are computed in float. With `found_inf` set to 1 nothing is written; with `grad_scale` gradients
// are divided by it and written back, as torch.amp.GradScaler expects of a fused optimizer. Called by
// csrc/aten/fused_optimizers.cpp. Spec: test/test_optim.py.
#include "csrc/kernels/fused_optimizers.h"

#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

MB_DEVICE bool skipped(const FusedStep& step) {
  return step.found_inf != nullptr && *step.found_inf == 1.0f;
}
MB_DEVICE double rate_of(const FusedStep& step) {
  return step.lr_tensor != nullptr ? *step.lr_tensor : step.lr;
}

// What is done to a gradient before it is used. `unscaled` goes back to memory where there is a scale.
template <class T>
struct Gradient {
  T scale, sign;
  bool scaled;
  MB_DEVICE explicit Gradient(const FusedStep& step)
      : scale(step.grad_scale != nullptr ? T(*step.grad_scale) : T(1)),
        sign(step.maximize ? T(-1) : T(1)),
        scaled(step.grad_scale != nullptr) {}
  MB_DEVICE T unscaled(T g) const { return scaled ? g / scale : g; }
};

constexpr unsigned kGradient = 1u << 1;

template <class T, bool Amsgrad>
struct AdamElement {
  Gradient<T> gradient;
  T beta1, beta2, eps, decay, keep, step_size, root2;  // decay is added to the gradient, keep multiplies the parameter
  MB_DEVICE void operator()(T (&v)[Amsgrad ? 5 : 4]) const {
    v[1] = gradient.unscaled(v[1]);
    T p = v[0] * keep;
    const T raised = gradient.sign * v[1];
    const T g = decay != T(0) ? raised + decay * v[0] : raised;
    const T average = v[2] + (T(1) - beta1) * (g - v[2]);
    const T square = beta2 * v[3] + (T(1) - beta2) * g * g;
    T largest = square;
    if constexpr (Amsgrad) {
      largest = v[4] != v[4] || v[4] > square ? v[4] : square;
      v[4] = largest;
    }
    v[0] = p - step_size * average / (math::sqrt(largest) / root2 + eps);
    v[2] = average;
    v[3] = square;
  }
};

template <class T, bool Amsgrad>
struct AdamChunk {
  static constexpr int N = Amsgrad ? 5 : 4;
  static constexpr unsigned kAll = (1u << N) - 1;
  FusedStep step;
  Adam adam;
  MB_DEVICE void operator()(Block block, const Span<N>& span, const float* steps) const {
    if (skipped(step)) return;
    const double lr = rate_of(step), count = *steps;
    const double correction1 = 1 - math::pow(adam.beta1, count), correction2 = 1 - math::pow(adam.beta2, count);
    const AdamElement<T, Amsgrad> f{Gradient<T>(step),
                                    T(adam.beta1),
                                    T(adam.beta2),
                                    T(adam.eps),
                                    T(adam.decoupled ? 0 : step.weight_decay),
                                    T(adam.decoupled ? 1 - lr * step.weight_decay : 1),
                                    T(lr / correction1),
                                    T(math::sqrt(correction2))};
    if (step.grad_scale != nullptr) return device::each_in_span<kAll, kAll, T>(block, span, f);
    device::each_in_span<kAll, kAll & ~kGradient, T>(block, span, f);
  }
};

template <class T, bool Momentum>
struct SgdElement {
  Gradient<T> gradient;
  T lr, decay, momentum, rest;  // rest = 1 - dampening
  bool nesterov, first_step;
  MB_DEVICE void operator()(T (&v)[Momentum ? 3 : 2]) const {
    v[1] = gradient.unscaled(v[1]);
    const T raised = gradient.sign * v[1];
    T g = decay != T(0) ? raised + decay * v[0] : raised;
    if constexpr (Momentum) {
      const T buffer = first_step ? g : momentum * v[2] + rest * g;
      v[2] = buffer;
      g = nesterov ? g + momentum * buffer : buffer;
    }
    v[0] = v[0] - lr * g;
  }
};

template <class T, bool Momentum>
struct SgdChunk {
  static constexpr int N = Momentum ? 3 : 2;
  static constexpr unsigned kAll = (1u << N) - 1;
  FusedStep step;
  Sgd sgd;
  MB_DEVICE void operator()(Block block, const Span<N>& span, NoExtra) const {
    if (skipped(step)) return;
    const SgdElement<T, Momentum> f{Gradient<T>(step),    T(rate_of(step)), T(step.weight_decay), T(sgd.momentum),
                                    T(1 - sgd.dampening), sgd.nesterov,     sgd.first_step};
    if (step.grad_scale != nullptr) return device::each_in_span<kAll, kAll, T>(block, span, f);
    device::each_in_span<kAll, kAll & ~kGradient, T>(block, span, f);
  }
};

template <class T>
struct AdagradElement {
  Gradient<T> gradient;
  T lr, decay, eps;
  MB_DEVICE void operator()(T (&v)[3]) const {
    v[1] = gradient.unscaled(v[1]);
    const T raised = gradient.sign * v[1];
    const T g = decay != T(0) ? raised + decay * v[0] : raised;
    v[2] = v[2] + g * g;
    v[0] = v[0] - lr * g / (math::sqrt(v[2]) + eps);
  }
};

template <class T>
struct AdagradChunk {
  FusedStep step;
  Adagrad adagrad;
  MB_DEVICE void operator()(Block block, const Span<3>& span, const float* steps) const {
    if (skipped(step)) return;
    const double lr = rate_of(step) / (1 + (*steps - 1) * adagrad.lr_decay);
    const AdagradElement<T> f{Gradient<T>(step), T(lr), T(step.weight_decay), T(adagrad.eps)};
    if (step.grad_scale != nullptr) return device::each_in_span<0b111, 0b111, T>(block, span, f);
    device::each_in_span<0b111, 0b101, T>(block, span, f);
  }
};

template <int N, class F>
void with_steps(Stream stream, const TensorLists& lists, void* const* steps, const F& f) {
  multi_tensor<N, const float*>(stream, lists, kPointwiseChunk, f,
                                [&](int64_t t) { return static_cast<const float*>(steps[t]); });
}

}  // namespace

MB_DEFINE_KERNEL(fused_adam, (Stream stream, const TensorLists& lists, void* const* steps, const FusedStep& step,
                              const Adam& adam)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "fused_adam_kernel", [&](auto type) {
    using T = typename decltype(type)::type;
    if (adam.amsgrad) return with_steps<5>(stream, lists, steps, AdamChunk<T, true>{step, adam});
    with_steps<4>(stream, lists, steps, AdamChunk<T, false>{step, adam});
  });
}

MB_DEFINE_KERNEL(fused_sgd, (Stream stream, const TensorLists& lists, const FusedStep& step, const Sgd& sgd)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "fused_sgd_kernel", [&](auto type) {
    using T = typename decltype(type)::type;
    if (sgd.momentum != 0) return multi_tensor<3>(stream, lists, kPointwiseChunk, SgdChunk<T, true>{step, sgd});
    multi_tensor<2>(stream, lists, kPointwiseChunk, SgdChunk<T, false>{step, sgd});
  });
}

MB_DEFINE_KERNEL(fused_adagrad, (Stream stream, const TensorLists& lists, void* const* steps, const FusedStep& step,
                                 const Adagrad& adagrad)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "fused_adagrad_kernel", [&](auto type) {
    using T = typename decltype(type)::type;
    with_steps<3>(stream, lists, steps, AdagradChunk<T>{step, adagrad});
  });
}

}  // namespace mybackend::kernels
