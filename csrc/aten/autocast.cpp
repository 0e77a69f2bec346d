// torch.autocast("mybackend"): which operators run in the lower precision, which in float32, which in the widest type
// of their arguments. The lists are upstream's, as for CUDA.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace mybackend::aten {
namespace {

// Upstream's macros spell types unqualified, and not the same ones in every version.
using namespace at;
using namespace at::autocast;

Tensor binary_cross_entropy_banned(const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
              "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
              "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
              "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
              "safe to autocast.");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define MB_LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define MB_FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define MB_FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define MB_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(MB_LOWER_PRECISION)
  AT_FORALL_FP32(MB_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(MB_FP32_SET_OPT_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(MB_PROMOTE)
  m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy_banned));
#undef MB_LOWER_PRECISION
#undef MB_FP32
#undef MB_FP32_SET_OPT_DTYPE
#undef MB_PROMOTE
}

}  // namespace mybackend::aten
