// Weight normalisation: w = v * g / |v|, the norm taken over every dimension but one. Norms of half and bfloat16 are
// float.
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "generated/weight_norm.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

c10::DimVector all_but(int64_t dim, int64_t dims) {
  c10::DimVector others;
  for (int64_t d = 0; d < dims; d++)
    if (d != dim) others.push_back(d);
  return others;
}

}  // namespace

std::tuple<Tensor, Tensor> _weight_norm_interface(const Tensor& v, const Tensor& g, int64_t dim) {
  TORCH_CHECK(dim == 0 || dim == v.dim() - 1, "fused kernels can only be applied for first or last dim");
  Tensor norms = at::linalg_vector_norm(v, 2, all_but(dim, v.dim()), true, at::toOpMathType(v.scalar_type()));
  return {v * g.div(norms).to(v.scalar_type()), norms};
}

std::tuple<Tensor, Tensor> _weight_norm_interface_backward(const Tensor& grad_w, const Tensor& saved_v,
                                                           const Tensor& saved_g, const Tensor& saved_norms,
                                                           int64_t dim) {
  TORCH_CHECK(saved_v.is_contiguous(), "saved_v must be contiguous");
  TORCH_CHECK(saved_g.is_contiguous(), "saved_g must be contiguous");
  TORCH_CHECK(saved_norms.is_contiguous(), "saved_norms must be contiguous");
  TORCH_CHECK(dim == 0 || dim == saved_v.dim() - 1, "fused kernels can only be applied for first or last dim");
  const auto wide = saved_norms.scalar_type();
  const Tensor along = (grad_w.to(wide) * saved_v).sum(all_but(dim, saved_v.dim()), true).div(saved_norms);
  const Tensor grad_v = (grad_w - saved_v * along.div(saved_norms)) * saved_g.div(saved_norms);
  return {grad_v.to(saved_v.scalar_type()), along.to(saved_g.scalar_type())};
}

}  // namespace mybackend::aten
