// Entry points of distributions.cu: random numbers whose distribution depends on the element, and the gradients that
// reparameterise them.
#pragma once

#include "csrc/device/kernel.h"
#include "csrc/device/operands.h"
#include "csrc/kernels/random.h"

namespace mybackend::kernels {

// operands out, concentration
MB_DECLARE_KERNEL(gamma_sample, void(Stream stream, const Operands<2>& operands, Seed seed));
// operands out, rate; NaN for a negative one
MB_DECLARE_KERNEL(poisson_sample, void(Stream stream, const Operands<2>& operands, Seed seed));
// operands out, count, probability
MB_DECLARE_KERNEL(binomial_sample, void(Stream stream, const Operands<3>& operands, Seed seed));
// operands out, concentration, sample: how the sample moves with the concentration at a fixed quantile
MB_DECLARE_KERNEL(gamma_gradient, void(Stream stream, const Operands<3>& operands));
// operands out, sample, concentration, total: the same for a Beta(concentration, total - concentration), over
// 1 - sample
MB_DECLARE_KERNEL(dirichlet_gradient, void(Stream stream, const Operands<4>& operands));

}  // namespace mybackend::kernels
