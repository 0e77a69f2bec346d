"""Gradient edges as outputs and inputs, hooks over several tensors."""

import pytest
import torch
from autograd_engine.vocabulary import leaf, message
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

pytestmark = pytest.mark.usefixtures("engine")


def test_edges_stand_for_tensors_as_outputs_and_inputs():
    x = leaf(2)
    y = x.sin()
    edge_y, edge_z = get_gradient_edge(y), get_gradient_edge(y * 2)
    of_y, of_x = torch.autograd.grad(edge_z, [edge_y, x], torch.ones(2), retain_graph=True)
    assert of_y.tolist() == [2, 2]
    torch.testing.assert_close(of_x, 2 * x.detach().cos())
    torch.autograd.backward([edge_z], [torch.ones(2)], inputs=[get_gradient_edge(x)])
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


def test_an_edge_of_several_elements_needs_a_gradient():
    y = leaf(2).sin()
    edge = get_gradient_edge(y * 2)
    assert message(lambda: torch.autograd.grad(edge, [get_gradient_edge(y)])) == (
        "RuntimeError: grad can be implicitly created only for scalar outputs"
    )


def test_an_inner_edge_may_be_an_input_of_backward():
    x = leaf(2)
    y = x.sin()
    torch.autograd.backward([get_gradient_edge(y * 2)], [torch.ones(2)], inputs=[get_gradient_edge(y)])
    assert x.grad is None


def listed(grads):
    return [None if grad is None else grad.tolist() for grad in grads]


def test_a_hook_over_all_tensors_runs_once_with_none_for_the_unused():
    seen = []
    a, b, c = leaf(2), leaf(2), leaf(2)
    register_multi_grad_hook([a, b, c], lambda grads: seen.append(listed(grads)))
    (a * b).sum().backward()
    (a * b * c).sum().backward(inputs=[a])
    assert seen == [[[1, 1], [1, 1], None], [[1, 1], None, None]]


def test_a_hook_over_any_tensor_runs_once_a_backward():
    seen, a, b = [], leaf(2), leaf(2)
    register_multi_grad_hook([a, b], lambda grad: seen.append(grad.tolist()), mode="any")
    (a * b).sum().backward()
    (a * b).sum().backward()
    assert seen == [[1, 1], [1, 1]]
