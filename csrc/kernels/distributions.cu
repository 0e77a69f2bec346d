// Gamma, Poisson and binomial samples by rejection, and implicit gradients of gamma and Dirichlet samples.
//
// All of it is in double. An element draws as often as it has to from subsequences of its own, (draw << 40) + position,
// so its number depends on seed, offset and position alone. Called by csrc/aten/distributions.cpp. Spec:
// test/ops/test_random.py.
#include "csrc/kernels/distributions.h"

#include "csrc/device/philox.h"
#include "csrc/device/tile.h"
#include "csrc/kernels/special.h"

namespace mybackend::kernels {
namespace {

// Two uniform numbers on (0, 1) at a time.
struct Draws {
  Seed seed;
  uint64_t position, count = 0;

  MB_DEVICE Draws(Seed s, int64_t element) : seed(s), position(uint64_t(element)) {}
  MB_DEVICE void two(double& first, double& second) {
    const device::Words4 words = device::philox(seed.seed, (count++ << 40) + position, seed.offset);
    first = device::uniform_open(words.word[0], words.word[1]);
    second = device::uniform_open(words.word[2], words.word[3]);
  }
};

// Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS, 2000); below 1 a sample of
// concentration + 1 is multiplied by a power of a uniform number.
struct Gamma {
  Seed seed;
  MB_DEVICE double operator()(int64_t element, double concentration) const {
    if (!(concentration > 0)) return concentration == 0 ? 0 : kNaN;
    Draws draws(seed, element);
    double u, v, scale = 1;
    if (concentration < 1) {
      draws.two(u, v);
      scale = math::pow(u, 1 / concentration);
      concentration += 1;
    }
    const double d = concentration - 1.0 / 3, c = 1 / math::sqrt(9 * d);
    for (;;) {
      draws.two(u, v);
      const double normal = math::sqrt(-2 * math::log(u)) * math::sin(2 * kPi * v);
      const double root = 1 + c * normal, cube = root * root * root;
      draws.two(u, v);
      if (root > 0 && math::log(u) < 0.5 * normal * normal + d * (1 - cube + math::log(cube))) return scale * d * cube;
    }
  }
};

// Below 10 uniform numbers are multiplied until the product falls below e^-rate (Knuth); from 10 on transformed
// rejection, PTRS of Hoermann, "The transformed rejection method for generating Poisson random variables" (1993).
struct Poisson {
  Seed seed;
  MB_DEVICE double operator()(int64_t element, double rate) const {
    if (!(rate >= 0)) return kNaN;
    Draws draws(seed, element);
    double u, v;
    if (rate < 10) {
      const double limit = math::exp(-rate);
      double product = 1;
      for (int64_t events = 0;; events += 2) {
        draws.two(u, v);
        product *= u;
        if (product <= limit) return double(events);
        product *= v;
        if (product <= limit) return double(events + 1);
      }
    }
    const double root = math::sqrt(rate), log_rate = math::log(rate);
    const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), inside = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
      draws.two(u, v);
      u -= 0.5;
      const double edge = 0.5 - math::fabs(u);
      const double k = math::floor((2 * a / edge + b) * u + rate + 0.43);
      if (edge >= 0.07 && v <= inside) return k;
      if (k < 0 || (edge < 0.013 && v > edge)) continue;
      if (math::log(v * inverse_alpha / (a / (edge * edge) + b)) <= k * log_rate - rate - math::lgamma(k + 1)) return k;
    }
  }
};

// Below 10 expected successes the waiting times between them are added up; from there on transformed rejection, BTRS of
// Hoermann, "The generation of binomial random variates" (1993). Successes above one half are failures counted.
struct Binomial {
  Seed seed;
  MB_DEVICE double operator()(int64_t element, double count, double probability) const {
    if (count != count || probability != probability) return kNaN;
    if (count <= 0 || probability <= 0) return 0;
    if (probability >= 1) return count;
    const bool flipped = probability > 0.5;
    const double p = flipped ? 1 - probability : probability;
    Draws draws(seed, element);
    const double k = count * p < 10 ? by_waiting(draws, count, p) : by_rejection(draws, count, p);
    return flipped ? count - k : k;
  }

  MB_DEVICE static double by_waiting(Draws& draws, double count, double p) {
    const double log_failure = math::log1p(-p);
    double u, v, trials = 0;
    for (int64_t successes = 0;; successes += 2) {
      draws.two(u, v);
      trials += math::ceil(math::log(u) / log_failure);
      if (trials > count) return double(successes);
      trials += math::ceil(math::log(v) / log_failure);
      if (trials > count) return double(successes + 1);
    }
  }

  MB_DEVICE static double by_rejection(Draws& draws, double count, double p) {
    const double spread = math::sqrt(count * p * (1 - p)), odds = p / (1 - p);
    const double b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5;
    const double inside = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
    const double mode = math::floor((count + 1) * p);
    const double at_mode = math::lgamma(mode + 1) + math::lgamma(count - mode + 1);
    double u, v;
    for (;;) {
      draws.two(u, v);
      u -= 0.5;
      const double edge = 0.5 - math::fabs(u), k = math::floor((2 * a / edge + b) * u + c);
      if (k < 0 || k > count) continue;
      if (edge >= 0.07 && v <= inside) return k;
      const double bound = at_mode - math::lgamma(k + 1) - math::lgamma(count - k + 1) + (k - mode) * math::log(odds);
      if (math::log(v * alpha / (a / (edge * edge) + b)) <= bound) return k;
    }
  }
};

constexpr double kSmall = 1e-17;

// dx/da = -(dP(a, x)/da) / p(x), P the regularised lower incomplete gamma function: its power series (DLMF 8.7.1),
// differentiated term by term. For large concentrations the expansion of Cornish and Fisher around the normal
// quantile z: x = a + z sqrt(a) + (z^2 - 1) / 3 + (z^3 - 7 z) / (36 sqrt(a)).
struct GammaGradient {
  MB_DEVICE double operator()(double a, double x) const {
    if (!(x > 0) || !(a > 0)) return x == 0 ? 0 : kNaN;
    if (a > 2000) {
      const double root = math::sqrt(a);
      double z = (x - a) / root;
      for (int k = 0; k < 4; k++) z = (x - a - (z * z - 1) / 3 - (z * z * z - 7 * z) / (36 * root)) / root;
      return 1 + z / (2 * root) - (z * z * z - 7 * z) / (72 * a * root);
    }
    const double log_x = math::log(x);
    double term = x / a, digamma = digamma_of(a + 1), sum = 0;
    for (double n = 1;; n += 1) {  // term: x^n / (a (a + 1) ... (a + n - 1))
      const double part = term * (digamma - log_x);
      sum += part;
      if (math::fabs(part) <= kSmall * math::fabs(sum) && n > x - a) return sum;
      if (!(term < kInfinity)) return kNaN;
      digamma += 1 / (a + n);
      term *= x / (a + n);
    }
  }
};

// The same for Beta(a, b) with b = total - a, over 1 - x: the series of the incomplete beta function (DLMF 8.17.8) in x
// or in 1 - x, whichever is smaller, differentiated term by term.
struct DirichletGradient {
  MB_DEVICE double operator()(double x, double a, double total) const {
    const double b = total - a;
    if (x != x || !(a > 0) || !(b > 0)) return kNaN;
    if (x <= 0) return 0;
    const double digammas = digamma_of(total) - digamma_of(a);
    const bool low = x <= 0.5;
    const double y = low ? x : x < 1 ? 1 - x : 0;
    // sum of t[n] = (total)_n / (first + 1)_n y^n, and of its derivatives by a.
    const double first = low ? a : b;
    double term = 1, slope = 0, sum = 0, slopes = 0;
    for (double n = 0; n < 1e6; n += 1) {
      sum += term;
      slopes += term * slope;
      const double ratio = y * (total + n) / (first + 1 + n);
      slope += low ? 1 / (total + n) - 1 / (a + 1 + n) : 1 / (total + n);
      term *= ratio;
      if (ratio < 1 && term <= kSmall * sum) break;
    }
    if (low) return -x / a * ((math::log(x) - 1 / a + digammas) * sum + slopes);
    return x / b * ((math::log(x) + digammas) * sum + slopes);
  }
};

}  // namespace

MB_DEFINE_KERNEL(gamma_sample, (Stream stream, const Operands<2>& o, Seed seed)) {
  device::pointwise_indexed<double, double>(stream, o, Gamma{seed});
}
MB_DEFINE_KERNEL(poisson_sample, (Stream stream, const Operands<2>& o, Seed seed)) {
  device::pointwise_indexed<double, double>(stream, o, Poisson{seed});
}
MB_DEFINE_KERNEL(binomial_sample, (Stream stream, const Operands<3>& o, Seed seed)) {
  device::pointwise_indexed<double, double, double>(stream, o, Binomial{seed});
}
MB_DEFINE_KERNEL(gamma_gradient, (Stream stream, const Operands<3>& o)) {
  device::pointwise<double, double, double>(stream, o, GammaGradient{});
}
MB_DEFINE_KERNEL(dirichlet_gradient, (Stream stream, const Operands<4>& o)) {
  device::pointwise<double, double, double, double>(stream, o, DirichletGradient{});
}

}  // namespace mybackend::kernels
