// What happens when an operator has no kernel for this device.
//
// MYBACKEND_FALLBACK=warn (default)  run it on the CPU, count it, warn once per operator
//                    silent          run it on the CPU, count it
//                    error           raise NotImplementedError
// Refused whatever the mode, since a copy on the CPU would mean something else: views (the result would not alias),
// factories (nothing to copy) and random numbers (another generator). Composites never get here: the dispatcher prefers
// their kernel to a fallback. Lists of tensors that are written are copied back by at::native::cpu_fallback.
#include "csrc/aten/fallback.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>

namespace mybackend::aten {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> since_reset;  // guarded by mutex
  std::map<std::string, bool> warned;          // guarded by mutex; never reset
};

Counts& counts() {
  static Counts* const table = new Counts;  // never destroyed: operators run during exit too
  return *table;
}

enum class Mode { Warn, Silent, Error };

Mode mode() {
  const char* value = std::getenv("MYBACKEND_FALLBACK");
  const std::string_view name = value == nullptr ? "warn" : value;
  if (name == "warn" || name.empty()) return Mode::Warn;
  if (name == "silent") return Mode::Silent;
  TORCH_CHECK_VALUE(name == "error", "MYBACKEND_FALLBACK has to be one of warn, silent, error; got '", name, "'");
  return Mode::Error;
}

// Why the operator may not run on the CPU in our place, or nullptr.
const char* refusal(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  for (const c10::Argument& result : schema.returns())
    if (result.alias_info() != nullptr && !result.alias_info()->isWrite())
      return "a view cannot be made on the CPU: its storage would not be shared";
  if (op.hasTag(at::Tag::nondeterministic_seeded))
    return "random numbers cannot be made on the CPU: they come from another generator";
  for (const c10::Argument& argument : schema.arguments()) {
    const c10::TypePtr& type = argument.type();
    if (type->isSubtypeOf(*c10::TensorType::get()) || type->isSubtypeOf(*c10::ListType::ofTensors()) ||
        type->isSubtypeOf(*c10::OptionalType::ofTensor()) || type->isSubtypeOf(*c10::ListType::ofOptionalTensors()))
      return nullptr;
  }
  return "a factory cannot be run on the CPU";
}

// The check a kernel of ours would have made. A 0-dim CPU tensor goes with any device, and so do indices (Tensor?[]).
void check_same_device(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::optional<c10::Device> common;
  const size_t count = op.schema().arguments().size();
  const auto check = [&](const at::Tensor& tensor, size_t i) {
    if (!tensor.defined() || (tensor.device().is_cpu() && tensor.dim() == 0)) return;
    if (!common) common = tensor.device();
    TORCH_CHECK(*common == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", *common, " and ",
                tensor.device(), "! (when checking argument for argument ", op.schema().arguments()[i].name(),
                " in method ", op.operator_name(), ")");
  };
  for (size_t i = 0; i < count; i++) {
    const c10::IValue& value = stack[stack.size() - count + i];
    if (value.isTensor()) check(value.toTensor(), i);
    if (value.isTensorList())
      for (const at::Tensor& tensor : value.toTensorVector()) check(tensor, i);
  }
}

void count(const std::string& name, bool warn) {
  bool first;
  {
    const std::lock_guard lock(counts().mutex);
    counts().since_reset[name]++;
    first = warn && !std::exchange(counts().warned[name], true);
  }
  if (first)
    TORCH_WARN("The operator '", name,
               "' is not currently supported on the mybackend device and runs on the CPU, with "
               "copies there and back. Set MYBACKEND_FALLBACK=error to see where, or =silent to hide this.");
}

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = c10::toString(op.operator_name());
  const Mode chosen = mode();
  const char* why = refusal(op);
  if (why == nullptr && chosen == Mode::Error) why = "MYBACKEND_FALLBACK=error forbids the CPU fallback";
  TORCH_CHECK_NOT_IMPLEMENTED(why == nullptr, "Could not run '", name,
                              "' with arguments from the 'mybackend' backend: the operator has no kernel for it, and ",
                              why, ".");
  check_same_device(op, *stack);
  count(name, chosen == Mode::Warn);
  at::native::cpu_fallback(op, stack, /*error_on_views=*/true);
}

}  // namespace

std::map<std::string, int64_t> fallbacks() {
  const std::lock_guard lock(counts().mutex);
  return counts().since_reset;
}

void reset_fallbacks() {
  const std::lock_guard lock(counts().mutex);
  counts().since_reset.clear();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace mybackend::aten
