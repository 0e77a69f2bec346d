// Pointwise operators of two tensors: upstream's shape, dtype and error code, our kernels behind its stubs; add, whose
// implementation upstream does not share between devices, on its meta function.
#include <ATen/native/BinaryOps.h>
#include <ATen/native/Pow.h>
#include <ATen/native/TensorFactories.h>

#include "csrc/aten/pointwise.h"
#include "csrc/aten/structured.h"
#include "csrc/kernels/binary.h"
#include "csrc/runtime/errors.h"
#include "generated/binary.h"

namespace mybackend::aten {
namespace {

// Division that can meet an integer zero, which raises as on the CPU.
template <auto& kernel>
void run_division(at::TensorIteratorBase& iter) {
  const c10::DeviceIndex device = iter.device(0).index();
  const Operands<3> o = operands_of<3>(iter);
  if (c10::isFloatingType(static_cast<c10::ScalarType>(o.compute)))
    return kernel(runtime::current_stream(device), o, nullptr);
  kernel(runtime::current_stream(device), o, runtime::error_record(device));
  runtime::check_device_errors(device);
}

}  // namespace

MB_IMPL_FUNC(add_out)(const at::Tensor&, const at::Tensor&, const at::Scalar& alpha, const at::Tensor&) {
  run_with_scalar<3, kernels::add>(*this, alpha);
}

}  // namespace mybackend::aten

namespace at::native {
namespace aten = mybackend::aten;

#define REGISTER_BINARY(name) \
  REGISTER_PRIVATEUSE1_DISPATCH(name##_stub, (&aten::run_pointwise<3, mybackend::kernels::name>))
MB_BINARY_ARITHMETIC(REGISTER_BINARY)
MB_BINARY_MATHS(REGISTER_BINARY)
MB_BINARY_BITS(REGISTER_BINARY)
MB_BINARY_SPECIAL(REGISTER_BINARY)
MB_BINARY_POLYNOMIAL(REGISTER_BINARY)
#undef REGISTER_BINARY

#define REGISTER_DIVISION(name) \
  REGISTER_PRIVATEUSE1_DISPATCH(name##_stub, &aten::run_division<mybackend::kernels::name>)
MB_BINARY_DIVISION(REGISTER_DIVISION)
#undef REGISTER_DIVISION

REGISTER_PRIVATEUSE1_DISPATCH(add_stub, (&aten::run_with_scalar<3, mybackend::kernels::add>))
REGISTER_PRIVATEUSE1_DISPATCH(sub_stub, (&aten::run_with_scalar<3, mybackend::kernels::sub>))
REGISTER_PRIVATEUSE1_DISPATCH(logit_backward_stub, (&aten::run_with_doubles<3, mybackend::kernels::logit_backward>))
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_tensor_stub, (&aten::run_pointwise<3, mybackend::kernels::pow_tensor_tensor>))
REGISTER_PRIVATEUSE1_DISPATCH(pow_tensor_scalar_stub,
                              (&aten::run_with_scalar<2, mybackend::kernels::pow_tensor_scalar>))
REGISTER_PRIVATEUSE1_DISPATCH(complex_stub, (&aten::run_pointwise<3, mybackend::kernels::complex_of>))
REGISTER_PRIVATEUSE1_DISPATCH(polar_stub, (&aten::run_pointwise<3, mybackend::kernels::polar>))
}  // namespace at::native
