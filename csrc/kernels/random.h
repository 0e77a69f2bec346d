// Entry points of csrc/kernels/random.cu: arrays of random numbers from a Philox state.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"

namespace mybackend::kernels {
using device::Stream;

// Words that one element group draws from its subsequence, at most; what callers reserve from the generator.
constexpr uint64_t kWordsPerDraw = 8;

struct Seed {
  uint64_t seed, offset;
};

// Uniform on [from, to); never above `last`, the largest value below `to` that the output can hold.
MB_DECLARE_KERNEL(uniform, void(Stream stream, const Operands<1>& out, Seed seed, double from, double to, double last));
MB_DECLARE_KERNEL(normal, void(Stream stream, const Operands<1>& out, Seed seed, double mean, double std));
MB_DECLARE_KERNEL(log_normal, void(Stream stream, const Operands<1>& out, Seed seed, double mean, double std));
MB_DECLARE_KERNEL(exponential, void(Stream stream, const Operands<1>& out, Seed seed, double lambda));
MB_DECLARE_KERNEL(cauchy, void(Stream stream, const Operands<1>& out, Seed seed, double median, double sigma));
MB_DECLARE_KERNEL(geometric, void(Stream stream, const Operands<1>& out, Seed seed, double p));
MB_DECLARE_KERNEL(bernoulli, void(Stream stream, const Operands<1>& out, Seed seed, double p));
// Integers base + (random word mod range); range 0 means all 2^64.
MB_DECLARE_KERNEL(random_integers,
                  void(Stream stream, const Operands<1>& out, Seed seed, uint64_t range, int64_t base));
// out = uniform < p; reports kProbabilityOutOfRange where p is not in [0, 1]. Operands: out, uniform, p.
MB_DECLARE_KERNEL(bernoulli_from, void(Stream stream, const Operands<3>& operands, device::ErrorRecord* errors));
// out = mask ? x * scale : 0. Operands: out, x, mask.
MB_DECLARE_KERNEL(masked_scale, void(Stream stream, const Operands<3>& operands, double scale));

}  // namespace mybackend::kernels
