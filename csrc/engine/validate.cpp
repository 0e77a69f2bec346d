#include "csrc/engine/validate.h"

namespace mybackend::engine {
namespace {

using torch::autograd::InputMetadata;

// Whether upstream's check would leave the gradient as it is. May say no where it would.
bool conforms(const InputMetadata& expected, const Tensor& gradient) {
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  if (expected.was_default_constructed() || expected.is_nested_tensor() || expected.is_cpp_nested_tensor() ||
      expected.is_tensor_subclass() || impl.has_symbolic_sizes_strides() ||
      impl.key_set().has_any(c10::DispatchKeySet(
          {c10::DispatchKey::Python, c10::DispatchKey::NestedTensor, c10::DispatchKey::FuncTorchBatched})) ||
      impl.layout() != at::kStrided || expected.layout() != at::kStrided) {
    return false;
  }
  const auto type = expected.grad_dtype();
  if (!type || *type != c10::typeMetaToScalarType(impl.dtype()) || impl.device() != expected.device()) return false;
  const c10::IntArrayRef sizes = impl.sizes();
  const c10::SymIntArrayRef shape = expected.shape_as_dim_vector();
  if (sizes.size() != shape.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (shape[i].is_heap_allocated() || shape[i].as_int_unchecked() != sizes[i]) return false;
  }
  return true;
}

bool all_conform(const edge_list& edges, const variable_list& gradients) {
  if (gradients.size() != edges.size()) return false;
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].is_valid() && gradients[i].defined() &&
        !conforms(edges[i].function->input_metadata(edges[i].input_nr), gradients[i])) {
      return false;
    }
  }
  return true;
}

// Upstream has a raw assertion here.
void check_complex(const Node& node, const variable_list& gradients) {
  const edge_list& edges = node.next_edges();
  for (size_t i = 0; i < std::min(edges.size(), gradients.size()); ++i) {
    if (!edges[i].is_valid() || !gradients[i].defined() || !gradients[i].is_complex()) continue;
    const InputMetadata& expected = edges[i].function->input_metadata(edges[i].input_nr);
    if (expected.was_default_constructed()) continue;
    const auto type = c10::typeMetaToScalarType(expected.dtype());
    TORCH_CHECK(c10::isComplexType(type), "Function ", node.name(), " returned an invalid gradient at index ", i,
                " - expected a real gradient, since the input it belongs to has dtype ", type, ", but got dtype ",
                gradients[i].scalar_type(), ". Take its real part in the backward.");
  }
}

}  // namespace

void validate(const Node& node, variable_list& outputs) {
  if (all_conform(node.next_edges(), outputs)) return;
  check_complex(node, outputs);
  torch::autograd::validate_outputs(node.next_edges(), outputs, [&](const std::string& problem) {
    return c10::str("Function ", node.name(), " returned an ", problem);
  });
}

}  // namespace mybackend::engine
