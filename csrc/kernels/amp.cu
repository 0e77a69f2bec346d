// Gradient scaling: unscale gradients, look for inf and NaN, move the scale. Called by csrc/aten/amp.cpp.
// Spec: test/test_optim.py.
#include "csrc/kernels/foreach.h"
#include "csrc/kernels/multi_tensor.h"

namespace mybackend::kernels {
namespace {

// 0 for a finite x, NaN otherwise.
template <class T>
struct Trace {
  MB_DEVICE T operator()(T x) const { return x * T(0); }
};

template <class T>
struct Scale {
  T factor;
  MB_DEVICE void operator()(T (&v)[1]) const { v[0] = v[0] * factor; }
};

template <class T>
struct Unscale {
  float* found_inf;
  const float* inverse_scale;
  MB_DEVICE void operator()(Block block, const Span<1>& span, NoExtra) const {
    const T trace = device::sum_in_span<T>(block, span, 0, Trace<T>{});
    // Blocks that find something all write the same value.
    if (trace != T(0)) block.each(1, [&](int64_t) { *static_cast<volatile float*>(found_inf) = 1.0f; });
    const T factor = T(*inverse_scale);
    if (factor != T(1)) device::each_in_span<1, 1, T>(block, span, Scale<T>{factor});
  }
};

struct UpdateScale {
  float* scale;
  int* growth_tracker;
  const float* found_inf;
  double growth_factor, backoff_factor;
  int64_t growth_interval;
  MB_DEVICE void operator()(Block block) const {
    block.each(1, [&](int64_t) {
      if (*found_inf != 0.0f) {
        *scale = float(*scale * backoff_factor);
        *growth_tracker = 0;
        return;
      }
      const int successes = *growth_tracker + 1;
      if (successes == growth_interval) {
        const float grown = float(*scale * growth_factor);
        if (grown - grown == 0.0f) *scale = grown;  // never to infinity
      }
      *growth_tracker = successes == growth_interval ? 0 : successes;
    });
  }
};

}  // namespace

MB_DEFINE_KERNEL(amp_unscale, (Stream stream, const TensorLists& lists, float* found_inf, const float* inverse_scale)) {
  visit<Floats>(compute_dtype(lists.dtype[0]), "_amp_foreach_non_finite_check_and_unscale", [&](auto type) {
    using T = typename decltype(type)::type;
    multi_tensor<1>(stream, lists, kPointwiseChunk, Unscale<T>{found_inf, inverse_scale});
  });
}

MB_DEFINE_KERNEL(amp_update_scale, (Stream stream, float* scale, int* growth_tracker, const float* found_inf,
                                    double growth_factor, double backoff_factor, int64_t growth_interval)) {
  device::launch(stream, {1, 32, 1},
                 UpdateScale{scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval});
}

}  // namespace mybackend::kernels
