// renorm: upstream takes the norms and multiplies; the factors are ours.
#include <ATen/TensorIterator.h>
#include <ATen/native/Normalization.h>

#include "csrc/aten/iterator.h"
#include "csrc/kernels/renorm.h"

namespace mybackend::aten {
namespace {

void renorm_factor(at::TensorIteratorBase& iter, double largest) {
  kernels::renorm_factor(runtime::current_stream(iter.device(0).index()), operands_of<2>(iter), largest);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(renorm_scale_factor_stub, &mybackend::aten::renorm_factor)
}  // namespace at::native
