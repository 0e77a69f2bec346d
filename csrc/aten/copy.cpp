// _copy_from: every copy that has this device on one side; fill_ and zero_ through fill_stub.
//
// copy_ itself stays upstream's (CompositeExplicit), which sends us anything it does not know as _copy_from(src, dst).
// Copies between a device and the host are raw memory copies of contiguous data of one dtype; whatever else is asked
// for is brought to that form by temporaries on the side where converting is cheaper: on the device when the copy may
// overlap with the host (`non_blocking`), on the host otherwise.
#include <ATen/core/Tensor.h>
#include <ATen/native/Fill.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <torch/library.h>

#include <string_view>

#include "csrc/aten/iterator.h"
#include "csrc/device/check.h"
#include "csrc/device/dtype.h"
#include "csrc/kernels/copy.h"
#include "csrc/runtime/copy.h"
#include "csrc/runtime/device.h"

namespace mybackend::aten {
namespace {

using at::Tensor;
using at::TensorIterator;
using c10::Device;

bool peers(Device to, Device from) {
  if (to == from) return true;
  int can = 0;
  MB_CHECK(device::api().device_can_access_peer(&can, from.index(), to.index()));
  return can != 0;
}

bool same_lazy_bits(const TensorIterator& iter) {
  return iter.tensor(0).is_conj() == iter.tensor(1).is_conj() && iter.tensor(0).is_neg() == iter.tensor(1).is_neg();
}

void run_copy_kernel(TensorIterator& iter, device::Stream stream) {
  kernels::copy(stream, operands_of<2>(iter), iter.tensor(0).is_conj() != iter.tensor(1).is_conj(),
                iter.tensor(0).is_neg() != iter.tensor(1).is_neg());
}

bool is_plain_move(const TensorIterator& iter) {
  return iter.dtype(0) == iter.dtype(1) && same_lazy_bits(iter) && iter.is_contiguous();
}

// The copy runs on the source's current stream; a two-way barrier orders it with the destination's current stream.
void copy_across_devices(TensorIterator& iter) {
  const Device to = iter.device(0), from = iter.device(1);
  c10::Event destination_ready(runtime::kDeviceType), copied(runtime::kDeviceType);
  const c10::Stream to_stream = runtime::current_c10_stream(to.index());
  const c10::Stream from_stream = runtime::current_c10_stream(from.index());
  destination_ready.record(to_stream);
  destination_ready.block(from_stream);
  {
    runtime::DeviceScope scope(from.index());
    if (is_plain_move(iter)) {
      MB_CHECK(device::api().memcpy_peer_async(iter.data_ptr(0), to.index(), iter.data_ptr(1), from.index(),
                                               static_cast<size_t>(iter.numel() * iter.element_size(0)),
                                               runtime::current_stream(from.index())));
    } else {
      run_copy_kernel(iter, runtime::current_stream(from.index()));
    }
  }
  copied.record(from_stream);
  copied.block(to_stream);
}

void copy_by_temporaries(TensorIterator& iter, bool non_blocking) {
  const Tensor& dst = iter.tensor(0);
  const Tensor& src = iter.tensor(1);
  const auto converting_side = non_blocking ? runtime::kDeviceType : c10::DeviceType::CPU;
  Tensor to, from;
  if (iter.device_type(1) == converting_side) {
    to = dst.is_contiguous() ? dst : at::empty_like(dst, at::MemoryFormat::Contiguous);
    from = src.to(iter.dtype(0)).expand_as(dst).contiguous();
  } else {
    to = dst.is_contiguous() && iter.dtype(0) == iter.dtype(1)
             ? dst
             : at::empty_like(dst, dst.options().dtype(iter.dtype(1)), at::MemoryFormat::Contiguous);
    from = src.expand_as(dst).contiguous();
  }
  to._set_conj(dst.is_conj());
  from._set_conj(src.is_conj());
  to._set_neg(dst.is_neg());
  from._set_neg(src.is_neg());
  to.copy_(from, non_blocking);
  if (!to.is_same(dst)) dst.copy_(to, non_blocking);
}

void copy_host_and_device(TensorIterator& iter, bool non_blocking) {
  const bool to_device = iter.device_type(0) == runtime::kDeviceType;
  const Device where = iter.device(to_device ? 0 : 1);
  const Tensor& on_host = iter.tensor(to_device ? 1 : 0);
  runtime::DeviceScope scope(where.index());
  runtime::copy_between_host_and_device(iter.data_ptr(0), iter.data_ptr(1),
                                        static_cast<size_t>(iter.numel() * iter.element_size(0)), to_device,
                                        on_host.storage().data_ptr(), where.index(), non_blocking);
  if (iter.tensor(0).is_conj() != iter.tensor(1).is_conj()) iter.tensor(0).conj_physical_();
  if (iter.tensor(0).is_neg() != iter.tensor(1).is_neg()) iter.tensor(0).neg_();
}

// A type without arithmetic in the kernels, such as float8. Its elements move as integers of their size; only the CPU
// converts them.
bool is_opaque(c10::ScalarType type) {
  return name_of(static_cast<DType>(type)) == std::string_view("Undefined");
}

c10::ScalarType integer_of_size(size_t bytes) {
  switch (bytes) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    default:
      return at::kLong;
  }
}

void copy_opaque(const Tensor& dst, const Tensor& src) {
  if (dst.scalar_type() != src.scalar_type()) {
    dst.copy_(src.cpu().to(dst.scalar_type()));
    return;
  }
  const auto as = integer_of_size(dst.element_size());
  dst.view(as).copy_(src.view(as));
}

void copy_iterator(TensorIterator& iter, bool non_blocking) {
  const Device to = iter.device(0), from = iter.device(1);
  const bool both = to.type() == from.type();
  if (both && (is_opaque(iter.dtype(0)) || is_opaque(iter.dtype(1)))) {
    return copy_opaque(iter.tensor(0), iter.tensor(1));
  }
  if (to == from) {
    runtime::DeviceScope scope(to.index());
    return run_copy_kernel(iter, runtime::current_stream(to.index()));
  }
  const bool raw = iter.dtype(0) == iter.dtype(1) && iter.is_contiguous();
  if (both ? !(is_plain_move(iter) || peers(to, from)) : !raw) return copy_by_temporaries(iter, non_blocking);
  if (both) return copy_across_devices(iter);
  copy_host_and_device(iter, non_blocking);
}

void fill_kernel(TensorIterator& iter, const c10::Scalar& value) {
  Operands<2> o = with_scalar(operands_of<1>(iter), value);
  if (is_opaque(iter.dtype(0)))  // its bytes are all that a kernel needs to know
    o.dtype[0] = o.dtype[1] = o.compute = to_dtype(integer_of_size(static_cast<size_t>(iter.element_size(0))));
  kernels::fill(runtime::current_stream(iter.device(0).index()), o);
}

}  // namespace

Tensor _copy_from(const Tensor& src, const Tensor& dst, bool non_blocking) {
  TORCH_CHECK(dst.defined(), "self is undefined");
  TORCH_CHECK(src.defined(), "src is undefined");
  TORCH_CHECK(src.device().is_cpu() || src.device().is_privateuseone(), "copy_: unsupported source device ",
              src.device());
  TORCH_CHECK(dst.device().is_cpu() || dst.device().is_privateuseone(), "copy_: unsupported destination device ",
              dst.device());
  const bool same_data = dst.is_alias_of(src) && dst.storage_offset() == src.storage_offset() &&
                         dst.strides().equals(src.strides()) && dst.sizes().equals(src.sizes()) &&
                         dst.scalar_type() == src.scalar_type() && dst.is_conj() == src.is_conj() &&
                         dst.is_neg() == src.is_neg();
  if (same_data) return dst;
  TensorIterator iter = at::TensorIteratorConfig()
                            .add_output(dst)
                            .add_const_input(src)
                            .resize_outputs(false)
                            .check_all_same_dtype(false)
                            .check_all_same_device(false)
                            .build();
  if (iter.numel() == 0) return dst;
  if (!dst.is_complex() && dst.scalar_type() != c10::ScalarType::Bool && src.is_complex()) {
    TORCH_WARN_ONCE("Casting complex values to real discards the imaginary part");
  }
  copy_iterator(iter, non_blocking);
  return dst;
}

// As for copy_: the kernel resolves the lazy bits itself. Without this the fallback that resolves them would call
// clone, which ends here again, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace mybackend::aten

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(fill_stub, &mybackend::aten::fill_kernel)
}  // namespace at::native
