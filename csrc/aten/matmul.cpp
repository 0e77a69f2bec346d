// Matrix products: mm, addmm, bmm, baddbmm, addmv, dot, vdot, _int_mm. Shapes and dtypes are checked by upstream's meta
// functions (for dot, vdot and _int_mm here, in upstream's words); the product is the library's.
#include <ATen/ExpandUtils.h>

#include "csrc/aten/factories.h"
#include "csrc/aten/library.h"
#include "csrc/aten/structured.h"
#include "generated/matmul.h"

namespace mybackend::aten {
namespace {

using at::Scalar;
using at::Tensor;

void check_dot(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
              a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [",
              b.numel(), "] to have the same number of elements, but got ", a.numel(), " and ", b.numel(),
              " elements respectively");
}

// What the kernels check, but must be said before work is deferred.
void check_matrices(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dtype() == b.dtype(), "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
              " != ", b.dtype());
  TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kBool, "\"addmm_impl_cpu_\" not implemented for 'Bool'");
}

void check_batches(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dtype() == b.dtype(), "expected scalar type ", a.scalar_type(), " but found ", b.scalar_type());
  TORCH_CHECK_NOT_IMPLEMENTED(a.scalar_type() != at::kBool, "\"bmm\" not implemented for 'Bool'");
}

void check_expands(const Tensor& self, const Tensor& out) {
  if (!self.sizes().equals(out.sizes())) at::inferExpandGeometry(self.sizes(), self.strides(), out.sizes());
}

void check_int_mm(const Tensor& a, const Tensor& b) {
  TORCH_CHECK(a.dim() == 2, __func__, ": Expected self to be of dimension 2 but got ", a.dim());
  TORCH_CHECK(b.dim() == 2, __func__, ": Expected mat2 to be of dimension 2 but got ", b.dim());
  TORCH_CHECK(a.size(1) == b.size(0), __func__, ": self.size(1) needs to match mat2.size(0) but got ", a.size(1),
              " and ", b.size(0));
  TORCH_CHECK(a.scalar_type() == at::kChar, __func__, ": Expected self dtype to be of type int8 but got ",
              a.scalar_type());
  TORCH_CHECK(b.scalar_type() == at::kChar, __func__, ": Expected mat2 dtype to be of type int8 but got ",
              b.scalar_type());
}

}  // namespace

MB_IMPL_FUNC(mm_out)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  check_matrices(self, mat2);
  library().mm(self, mat2, out);
}

MB_IMPL_FUNC(addmm_out)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
 const Tensor& out) {
  check_matrices(mat1, mat2);
  check_expands(self, out);
  library().addmm(self, mat1, mat2, beta, alpha, Epilogue::None, out);
}

MB_IMPL_FUNC(_addmm_activation_out)
(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, bool use_gelu,
 const Tensor& out) {
  check_matrices(mat1, mat2);
  check_expands(self, out);
  library().addmm(self, mat1, mat2, beta, alpha, use_gelu ? Epilogue::Gelu : Epilogue::Relu, out);
}

MB_IMPL_FUNC(bmm_out)(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  check_batches(self, mat2);
  library().bmm(self, mat2, out);
}

MB_IMPL_FUNC(baddbmm_out)
(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha,
 const Tensor& out) {
  check_batches(batch1, batch2);
  check_expands(self, out);
  library().baddbmm(self, batch1, batch2, beta, alpha, out);
}

MB_IMPL_FUNC(addmv_out)
(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha, const Tensor& out) {
  library().addmv(self, mat, vec, beta, alpha, out);
}

Tensor dot(const Tensor& self, const Tensor& tensor) {
  check_dot(self, tensor);
  Tensor out = empty_on_current_device({}, self.scalar_type(), std::nullopt);
  library().dot(self, tensor, out);
  return out;
}

Tensor vdot(const Tensor& self, const Tensor& other) {
  check_dot(self, other);
  Tensor out = empty_on_current_device({}, self.scalar_type(), std::nullopt);
  library().vdot(self, other, out);
  return out;
}

Tensor& _int_mm_out(const Tensor& self, const Tensor& mat2, Tensor& out) {
  check_int_mm(self, mat2);
  TORCH_CHECK(out.scalar_type() == at::kInt, "_int_mm_out: Expected out dtype to be of type int32 but got ",
              out.scalar_type());
  out.resize_({self.size(0), mat2.size(1)});
  library().int_mm(self, mat2, out);
  return out;
}

Tensor _int_mm(const Tensor& self, const Tensor& mat2) {
  check_int_mm(self, mat2);
  Tensor out = empty_on_current_device({self.size(0), mat2.size(1)}, at::kInt, std::nullopt);
  library().int_mm(self, mat2, out);
  return out;
}

}  // namespace mybackend::aten
