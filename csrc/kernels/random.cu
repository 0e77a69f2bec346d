// Random arrays: uniform, normal and friends, each number a function of (seed, offset, position).
//
// Elements are drawn four at a time. Within a stretch of kElementsPerBlock elements, group g of kGroups draws from
// subsequence (stretch * kGroups + g) and yields elements g, g + kGroups, g + 2 kGroups, g + 3 kGroups of the stretch:
// every lane is then contiguous, which vectorises on the host and coalesces on the GPU. Called by csrc/aten/random.cpp.
// Spec: test/ops/test_random.py.
#include "csrc/kernels/random.h"

#include "csrc/device/errors.h"
#include "csrc/device/philox.h"
#include "csrc/device/tile.h"

namespace mybackend::kernels {
namespace {

using device::Block;
using device::Words4;

constexpr int64_t kGroups = device::kElementsPerBlock / 4;

// Four uniform numbers on (0, 1) as T, from one draw (float) or two (double).
template <class T>
struct Uniform4 {
  T value[4];
  MB_DEVICE Uniform4(Seed s, uint64_t subsequence) {
    const Words4 a = device::philox(s.seed, subsequence, s.offset);
    if constexpr (std::is_same_v<T, double>) {
      const Words4 b = device::philox(s.seed, subsequence, s.offset + 4);
      for (int i = 0; i < 4; i++) value[i] = device::uniform_open(a.word[i], b.word[i]);
    } else {
      for (int i = 0; i < 4; i++) value[i] = device::uniform_open(a.word[i]);
    }
  }
};

// f(seed, subsequence, out) writes four values to out[0], out[kGroups], out[2 kGroups], out[3 kGroups].
template <class T, class F>
struct Draw {
  Operands<1> o;
  Seed seed;
  F f;

  MB_DEVICE void operator()(Block block) const {
    MB_SHARED(block, T, drawn, device::kElementsPerBlock);
    T* out = drawn;
    const uint64_t first = uint64_t(block.index) * uint64_t(kGroups);
    block.each(kGroups, [&](int64_t g) { f(seed, first + uint64_t(g), out + g); });
    block.sync();
    device::store_block<T>(block, o, out);
  }
};

template <class T, class F>
void draw(Stream stream, const Operands<1>& o, Seed seed, F f) {
  device::launch(stream, device::pointwise_grid(o.numel), Draw<T, F>{o, seed, f});
}

template <class T>
struct Uniform {
  T from, range, last;
  int bits;
  MB_DEVICE void operator()(Seed s, uint64_t subsequence, T* out) const {
    const Words4 a = device::philox(s.seed, subsequence, s.offset);
    const Words4 b = std::is_same_v<T, double> ? device::philox(s.seed, subsequence, s.offset + 4) : a;
    for (int i = 0; i < 4; i++) {
      T u;
      if constexpr (std::is_same_v<T, double>) {
        u = device::uniform_double(a.word[i], b.word[i]);
      } else {
        u = device::uniform_float(a.word[i], bits);
      }
      const T value = u * range + from;
      out[i * kGroups] = value < last ? value : last;
    }
  }
};

// Box and Muller, 1958: two uniforms give two independent normals.
template <class T, bool Exponentiate>
struct Normal {
  T mean, std;
  MB_DEVICE void operator()(Seed s, uint64_t subsequence, T* out) const {
    const Uniform4<T> u(s, subsequence);
    constexpr T kTurn = T(6.283185307179586476925286766559);
    constexpr T kQuarter =
        kTurn / 4;  // cos as a shifted sin: compilers fuse a sin and a cos into a call that is scalar
    for (int i = 0; i < 4; i += 2) {
      const T radius = math::sqrt(T(-2) * math::log(u.value[i])) * std;
      const T x = radius * math::sin(kTurn * u.value[i + 1] + kQuarter) + mean;
      const T y = radius * math::sin(kTurn * u.value[i + 1]) + mean;
      out[i * kGroups] = Exponentiate ? math::exp(x) : x;
      out[(i + 1) * kGroups] = Exponentiate ? math::exp(y) : y;
    }
  }
};

// The inverse distribution function of one uniform on (0, 1).
template <class T, class Inverse>
struct Inverted {
  Inverse inverse;
  MB_DEVICE void operator()(Seed s, uint64_t subsequence, T* out) const {
    const Uniform4<T> u(s, subsequence);
    for (int i = 0; i < 4; i++) out[i * kGroups] = inverse(u.value[i]);
  }
};

template <class T>
struct Exponential {
  T lambda;
  MB_DEVICE T operator()(T u) const { return -math::log(u) / lambda; }
};

template <class T>
struct Cauchy {
  T median, sigma;
  MB_DEVICE T operator()(T u) const { return median + sigma * math::tan(T(3.14159265358979323846) * (u - T(0.5))); }
};

// The number of trials up to the first success.
template <class T>
struct Geometric {
  T log_failure;
  MB_DEVICE T operator()(T u) const {
    const T trials = math::ceil(math::log(u) / log_failure);
    return trials < T(1) ? T(1) : trials;
  }
};

template <class T>
struct Success {
  T p;
  MB_DEVICE T operator()(T u) const { return u < p ? T(1) : T(0); }
};

struct Integers64 {
  uint64_t range;
  int64_t base;
  MB_DEVICE void operator()(Seed s, uint64_t subsequence, int64_t* out) const {
    const Words4 a = device::philox(s.seed, subsequence, s.offset);
    const Words4 b = device::philox(s.seed, subsequence, s.offset + 4);
    for (int i = 0; i < 4; i++) {
      const uint64_t word = uint64_t(a.word[i]) << 32 | b.word[i];
      out[i * kGroups] = int64_t((range == 0 ? word : word % range) + uint64_t(base));
    }
  }
};

struct Integers32 {
  uint32_t range;
  int64_t base;
  MB_DEVICE void operator()(Seed s, uint64_t subsequence, int64_t* out) const {
    const Words4 a = device::philox(s.seed, subsequence, s.offset);
    for (int i = 0; i < 4; i++) out[i * kGroups] = int64_t(a.word[i] % range) + base;
  }
};

struct BernoulliFrom {
  device::ErrorRecord* errors;
  template <class T>
  MB_DEVICE T operator()(T u, T p) const {
    if (!(p >= T(0) && p <= T(1))) device::report(errors, device::kProbabilityOutOfRange);
    return u < p ? T(1) : T(0);
  }
};

template <class T>
struct MaskedScale {
  T scale;
  MB_DEVICE T operator()(T x, bool mask) const { return mask ? x * scale : T(0); }
};

int significant_bits(DType dtype) {
  return dtype == DType::Half ? 11 : dtype == DType::BFloat16 ? 8 : 24;
}

// Calls f(Type<T>{}) with the type an output of `dtype` is drawn in: double for double, float for everything else.
template <class F>
void drawn_in(DType dtype, F f) {
  if (dtype == DType::Double) return f(Type<double>{});
  f(Type<float>{});
}

}  // namespace

MB_DEFINE_KERNEL(uniform, (Stream stream, const Operands<1>& o, Seed seed, double from, double to, double last)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Uniform<T>{T(from), T(to - from), T(last), significant_bits(o.dtype[0])});
  });
}

MB_DEFINE_KERNEL(normal, (Stream stream, const Operands<1>& o, Seed seed, double mean, double std)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Normal<T, false>{T(mean), T(std)});
  });
}

MB_DEFINE_KERNEL(log_normal, (Stream stream, const Operands<1>& o, Seed seed, double mean, double std)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Normal<T, true>{T(mean), T(std)});
  });
}

MB_DEFINE_KERNEL(exponential, (Stream stream, const Operands<1>& o, Seed seed, double lambda)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Inverted<T, Exponential<T>>{{T(lambda)}});
  });
}

MB_DEFINE_KERNEL(cauchy, (Stream stream, const Operands<1>& o, Seed seed, double median, double sigma)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Inverted<T, Cauchy<T>>{{T(median), T(sigma)}});
  });
}

MB_DEFINE_KERNEL(geometric, (Stream stream, const Operands<1>& o, Seed seed, double p)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Inverted<T, Geometric<T>>{{T(std::log1p(-p))}});
  });
}

MB_DEFINE_KERNEL(bernoulli, (Stream stream, const Operands<1>& o, Seed seed, double p)) {
  drawn_in(o.dtype[0], [&](auto type) {
    using T = typename decltype(type)::type;
    draw<T>(stream, o, seed, Inverted<T, Success<T>>{{T(p)}});
  });
}

MB_DEFINE_KERNEL(random_integers, (Stream stream, const Operands<1>& o, Seed seed, uint64_t range, int64_t base)) {
  if (range != 0 && range <= 0xffffffffu) return draw<int64_t>(stream, o, seed, Integers32{uint32_t(range), base});
  draw<int64_t>(stream, o, seed, Integers64{range, base});
}

MB_DEFINE_KERNEL(bernoulli_from, (Stream stream, const Operands<3>& o, device::ErrorRecord* errors)) {
  visit<Floats>(compute_dtype(o.dtype[2]), "bernoulli_tensor", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise<T, T, T>(stream, o, BernoulliFrom{errors});
  });
}

MB_DEFINE_KERNEL(masked_scale, (Stream stream, const Operands<3>& o, double scale)) {
  visit<Join<Floats, Complexes>>(compute_dtype(o.dtype[1]), "native_dropout", [&](auto type) {
    using T = typename decltype(type)::type;
    device::pointwise<T, T, bool>(stream, o, MaskedScale<T>{T(Real<T>(scale))});
  });
}

}  // namespace mybackend::kernels
