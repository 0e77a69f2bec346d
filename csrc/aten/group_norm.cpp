// GroupNormKernel and GroupNormBackwardKernel: upstream's native_group_norm has checked, made things contiguous and
// allocated. Statistics are found in the compute type and stored in the dtype upstream gave them.
#include <ATen/native/group_norm.h>

#include "csrc/aten/channel_norm.h"

namespace mybackend::aten {
namespace {

using at::Tensor;

// Every plane of s elements is a channel of its own.
kernels::ChannelLayout planes_of(int64_t planes, int64_t s) {
  return {1, planes, s, false};
}

void group_norm_kernel(const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n, int64_t c, int64_t s,
                       int64_t groups, double eps, Tensor& out, Tensor& mean, Tensor& rstd) {
  if (n == 0) return;
  const auto stream = runtime::current_stream(input.device().index());
  const DType dtype = to_dtype(input.scalar_type()), compute = compute_dtype(dtype);
  const at::ScalarType type = compute_type(input.scalar_type());
  const kernels::GroupNormShape shape{n, c, groups, s};
  const Tensor means = empty_on_current_device(mean.sizes(), type), rstds = empty_on_current_device(rstd.sizes(), type);
  Workspace workspace(type, n * groups + 3 * n * c);
  void* squares = workspace.take(n * groups);
  void* plane_mean = workspace.take(n * c);
  void* scale = workspace.take(n * c);
  void* shift = workspace.take(n * c);
  kernels::channel_moments(stream, planes_of(n * groups, c / groups * s), dtype, input.const_data_ptr(),
                           means.mutable_data_ptr(), squares);
  kernels::group_norm_coefficients(stream, compute, shape, eps, means.const_data_ptr(), squares,
                                   rstds.mutable_data_ptr(), channel_array(weight), channel_array(bias), plane_mean,
                                   scale, shift);
  kernels::channel_normalize(stream, planes_of(n * c, s), dtype, input.const_data_ptr(), plane_mean, scale, shift,
                             out.mutable_data_ptr());
  mean.copy_(means);
  rstd.copy_(rstds);
}

void group_norm_backward_kernel(const Tensor& grad_out, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, int64_t n, int64_t c, int64_t s, int64_t groups, Tensor& grad_in,
                                Tensor& grad_weight, Tensor& grad_bias) {
  const auto stream = runtime::current_stream(input.device().index());
  const DType dtype = to_dtype(input.scalar_type()), compute = compute_dtype(dtype);
  const at::ScalarType type = compute_type(input.scalar_type());
  const kernels::GroupNormShape shape{n, c, groups, s};
  const Tensor plane_mean = mean.to(type).view({n, groups, 1}).expand({n, groups, c / groups}).contiguous();
  const Tensor rstds = rstd.to(type).contiguous();
  const auto grad = grad_out.expect_contiguous(), in = input.expect_contiguous();
  Workspace workspace(type, 5 * n * c);
  void* sum = workspace.take(n * c);
  void* product = workspace.take(n * c);
  const kernels::ChannelLayout planes = planes_of(n * c, s);
  kernels::channel_gradient_sums(stream, planes, dtype, grad->const_data_ptr(), in->const_data_ptr(),
                                 plane_mean.const_data_ptr(), sum, product);
  if (grad_in.defined()) {
    void* a = workspace.take(n * c);
    void* b = workspace.take(n * c);
    void* shift = workspace.take(n * c);
    kernels::group_norm_gradients(stream, compute, shape, sum, product, rstds.const_data_ptr(), channel_array(weight),
                                  a, b, shift);
    kernels::channel_normalize_backward(stream, planes, dtype, grad->const_data_ptr(), in->const_data_ptr(),
                                        plane_mean.const_data_ptr(), a, b, shift, grad_in.mutable_data_ptr());
  }
  if (grad_weight.defined() || grad_bias.defined())
    kernels::group_norm_weight_gradients(stream, compute, shape, sum, product, rstds.const_data_ptr(),
                                         channel_array(grad_weight), channel_array(grad_bias));
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(GroupNormKernel, &mybackend::aten::group_norm_kernel)
REGISTER_PRIVATEUSE1_DISPATCH(GroupNormBackwardKernel, &mybackend::aten::group_norm_backward_kernel)
}  // namespace at::native
