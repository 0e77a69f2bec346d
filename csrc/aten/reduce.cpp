// Reductions that upstream's code for CPU and CUDA ends in: sums, products, norms, logic, extrema.
//
// Upstream has checked arguments, cast the input and dealt with empty inputs. What is left is a Reduction and a kernel.
#include <ATen/native/ReduceAllOps.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/native/TensorCompare.h>
#include <ATen/native/TensorIterator.h>

#include "csrc/aten/iterator.h"
#include "csrc/aten/reduction.h"
#include "csrc/kernels/reductions.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorIterator;

device::Stream stream_of(const at::TensorIteratorBase& iter) {
  return runtime::current_stream(iter.device(0).index());
}
device::Stream stream_of(const Tensor& tensor) {
  return runtime::current_stream(tensor.device().index());
}

template <auto& kernel>
void reduce(TensorIterator& iter) {
  DeviceWorkspace workspace;
  kernel(stream_of(iter), reduction_of(iter), workspace);
}

void norm(TensorIterator& iter, const c10::Scalar& order) {
  const double p = order.toDouble();
  if (iter.numel() == 0) {
    iter.output().fill_(p < 0 ? INFINITY : 0);
    return;
  }
  DeviceWorkspace workspace;
  kernels::reduce_norm(stream_of(iter), reduction_of(iter), workspace, p, false);
}

// The position goes to the kernel's second output; the value is not asked for.
template <auto& kernel>
void position(TensorIterator& iter) {
  DeviceWorkspace workspace;
  Reduction r = reduction_of(iter);
  std::swap(r.out[0], r.out[1]);
  std::swap(r.out_dtype[0], r.out_dtype[1]);
  std::swap(r.out_stride[0], r.out_stride[1]);
  kernel(stream_of(iter), r, workspace);
}

template <auto& kernel>
void value_and_position(const Tensor& values, const Tensor& indices, const Tensor& self, int64_t dim,
                        bool /*keepdim*/) {
  DeviceWorkspace workspace;
  kernel(stream_of(self), reduction_over(self, dim, values, indices), workspace);
}

template <auto& kernel>
void over_all(Tensor& result, const Tensor& self) {
  DeviceWorkspace workspace;
  kernel(stream_of(self), reduction_over(self, std::nullopt, result), workspace);
}

void aminmax(const Tensor& self, int64_t dim, bool /*keepdim*/, Tensor& smallest, Tensor& largest) {
  DeviceWorkspace workspace;
  kernels::reduce_aminmax(stream_of(self), reduction_over(self, dim, smallest, largest), workspace);
}

void aminmax_all(const Tensor& self, Tensor& smallest, Tensor& largest) {
  DeviceWorkspace workspace;
  kernels::reduce_aminmax(stream_of(self), reduction_over(self, std::nullopt, smallest, largest), workspace);
}

}  // namespace
}  // namespace mybackend::aten

namespace at::native {
namespace ours = mybackend::aten;
namespace kernels = mybackend::kernels;
REGISTER_PRIVATEUSE1_DISPATCH(sum_stub, &ours::reduce<kernels::reduce_sum>)
REGISTER_PRIVATEUSE1_DISPATCH(nansum_stub, &ours::reduce<kernels::reduce_nansum>)
REGISTER_PRIVATEUSE1_DISPATCH(mean_stub, &ours::reduce<kernels::reduce_mean>)
REGISTER_PRIVATEUSE1_DISPATCH(prod_stub, &ours::reduce<kernels::reduce_prod>)
REGISTER_PRIVATEUSE1_DISPATCH(norm_stub, &ours::norm)
REGISTER_PRIVATEUSE1_DISPATCH(and_stub, &ours::reduce<kernels::reduce_all>)
REGISTER_PRIVATEUSE1_DISPATCH(or_stub, &ours::reduce<kernels::reduce_any>)
REGISTER_PRIVATEUSE1_DISPATCH(xor_sum_stub, &ours::reduce<kernels::reduce_xor>)
REGISTER_PRIVATEUSE1_DISPATCH(max_values_stub, &ours::reduce<kernels::reduce_max>)
REGISTER_PRIVATEUSE1_DISPATCH(min_values_stub, &ours::reduce<kernels::reduce_min>)
REGISTER_PRIVATEUSE1_DISPATCH(argmax_stub, &ours::position<kernels::reduce_max_index>)
REGISTER_PRIVATEUSE1_DISPATCH(argmin_stub, &ours::position<kernels::reduce_min_index>)
REGISTER_PRIVATEUSE1_DISPATCH(max_stub, &ours::value_and_position<kernels::reduce_max_index>)
REGISTER_PRIVATEUSE1_DISPATCH(min_stub, &ours::value_and_position<kernels::reduce_min_index>)
REGISTER_PRIVATEUSE1_DISPATCH(max_all_stub, &ours::over_all<kernels::reduce_max>)
REGISTER_PRIVATEUSE1_DISPATCH(min_all_stub, &ours::over_all<kernels::reduce_min>)
REGISTER_PRIVATEUSE1_DISPATCH(aminmax_stub, &ours::aminmax)
REGISTER_PRIVATEUSE1_DISPATCH(aminmax_allreduce_stub, &ours::aminmax_all)
}  // namespace at::native
