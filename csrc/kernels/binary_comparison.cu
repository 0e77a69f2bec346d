// Comparisons of two operands; the result is a bool. Called by csrc/aten/comparison.cpp.
// Spec: test/ops/test_pointwise.py.
#include "csrc/kernels/binary.h"
#include "csrc/kernels/pointwise.h"

namespace mybackend::kernels {
namespace {

using Equatable = Join<Everything, Unsigneds>;
using Ordered = Join<RealsAndBool, Unsigneds>;

MB_BINARY(eq, Equatable, return x == y;)
MB_BINARY(ne, Equatable, return x != y;)
MB_BINARY(lt, Ordered, return x < y;)
MB_BINARY(le, Ordered, return x <= y;)
MB_BINARY(gt, Ordered, return x > y;)
MB_BINARY(ge, Ordered, return x >= y;)

}  // namespace
}  // namespace mybackend::kernels
