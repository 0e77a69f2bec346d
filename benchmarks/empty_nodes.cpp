// Graphs of nodes that do nothing, so that a backward through them costs what the engine costs. Built by engine.py.
#include <torch/extension.h>

namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;
using NodePtr = decltype(Edge::function);

// Hands its one gradient to every node after it.
struct Pass : Node {
  explicit Pass(const at::Tensor& like) { add_input_metadata(like); }
  variable_list apply(variable_list&& gradients) override { return variable_list(num_outputs(), gradients[0]); }
  std::string name() const override { return "Pass"; }
};

template <class Pointer = NodePtr>
Pointer pass(const at::Tensor& like) {
  if constexpr (std::is_same_v<Pointer, std::shared_ptr<Node>>) {
    return std::make_shared<Pass>(like);
  } else {
    return c10::make_intrusive<Pass>(like);
  }
}

at::Tensor tensor_of(NodePtr node) {
  at::Tensor tensor = at::zeros({});
  torch::autograd::impl::set_gradient_edge(tensor, Edge(std::move(node), 0));
  return tensor;
}

// `length` nodes, each before the next.
at::Tensor chain(int64_t length) {
  const at::Tensor like = at::zeros({});
  NodePtr next;
  for (int64_t i = 0; i < length; ++i) {
    NodePtr node = pass(like);
    if (next) node->set_next_edges({Edge(std::move(next), 0)});
    next = std::move(node);
  }
  return tensor_of(std::move(next));
}

// `nodes` nodes in diamonds: one node, `width` after it, one after those, and so on.
at::Tensor diamonds(int64_t nodes, int64_t width) {
  const at::Tensor like = at::zeros({});
  NodePtr next = pass(like);
  for (int64_t made = 1; made < nodes; made += width + 1) {
    NodePtr node = pass(like);
    edge_list edges;
    for (int64_t i = 0; i < width; ++i) {
      NodePtr middle = pass(like);
      middle->set_next_edges({Edge(next, 0)});
      edges.emplace_back(std::move(middle), 0);
    }
    node->set_next_edges(std::move(edges));
    next = std::move(node);
  }
  return tensor_of(std::move(next));
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("chain", &chain);
  m.def("diamonds", &diamonds);
}
