// assert_nonzero: a check on the device that does not make the host wait.
// Called by csrc/aten/assertion.cpp. Spec: test/ops/test_assertion.py.
#include "csrc/kernels/assertion.h"

#include "csrc/device/errors.h"
#include "csrc/device/tile.h"

namespace mybackend::kernels {
namespace {

struct ReportZero {
  device::ErrorRecord* errors;
  int64_t message;

  template <class T>
  MB_DEVICE T operator()(T x) const {
    if (!convert<bool>(x)) device::report(errors, device::kAssertion, message);
    return x;
  }
};

}  // namespace

MB_DEFINE_KERNEL(assert_nonzero, (Stream stream, const Operands<2>& o, device::ErrorRecord* errors, int64_t message)) {
  visit<Join<Floats, Integers, Booleans, Complexes, Unsigneds>>(
      compute_dtype(o.dtype[1]), "_assert_async", [&](auto type) {
        using T = typename decltype(type)::type;
        device::pointwise<T, T>(stream, o, ReportZero{errors, message});
      });
}

}  // namespace mybackend::kernels
