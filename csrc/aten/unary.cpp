// Pointwise operators of one tensor: upstream's shape, dtype and error code, our kernels behind its stubs.
#include <ATen/native/TensorCompare.h>
#include <ATen/native/UnaryOps.h>

#include "csrc/aten/pointwise.h"
#include "csrc/kernels/unary.h"

namespace mybackend::aten {
namespace {

void round_decimals(at::TensorIteratorBase& iter, int64_t decimals) {
  kernels::round_decimals(stream_of(iter), operands_of<2>(iter), decimals);
}

void polygamma(at::TensorIteratorBase& iter, int64_t n) {
  kernels::polygamma(stream_of(iter), operands_of<2>(iter), n);
}

void nan_to_num(at::TensorIteratorBase& iter, std::optional<double> nan, std::optional<double> positive,
                std::optional<double> negative) {
  kernels::nan_to_num(stream_of(iter), operands_of<2>(iter), nan.value_or(0.0), positive ? &*positive : nullptr,
                      negative ? &*negative : nullptr);
}

void frexp(at::TensorIteratorBase& iter) {
  const Operands<3> o = operands_of<3>(iter);
  kernels::frexp_exponent(stream_of(iter), pick<2>(o, {1, 2}));
  kernels::frexp_mantissa(stream_of(iter), pick<2>(o, {0, 2}));
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
namespace aten = mybackend::aten;

#define REGISTER_UNARY(name) \
  REGISTER_PRIVATEUSE1_DISPATCH(name##_stub, (&aten::run_pointwise<2, mybackend::kernels::name>))
MB_UNARY_KERNELS(REGISTER_UNARY)
#undef REGISTER_UNARY

REGISTER_PRIVATEUSE1_DISPATCH(frexp_stub, &aten::frexp)
REGISTER_PRIVATEUSE1_DISPATCH(logit_stub, (&aten::run_with_doubles<2, mybackend::kernels::logit>))
REGISTER_PRIVATEUSE1_DISPATCH(nan_to_num_stub, &aten::nan_to_num)
REGISTER_PRIVATEUSE1_DISPATCH(polygamma_stub, &aten::polygamma)
REGISTER_PRIVATEUSE1_DISPATCH(round_decimals_stub, &aten::round_decimals)
// i0 and i1 under their other names
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_i0_stub, (&aten::run_pointwise<2, mybackend::kernels::i0>))
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_i1_stub,
                              (&aten::run_pointwise<2, mybackend::kernels::special_i1>))
}  // namespace at::native
