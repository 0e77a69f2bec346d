"""Compiled graphs run as nodes of the engine; compiled autograd takes the whole backward over."""

import pytest
import torch
import torch._dynamo.compiled_autograd as compiled_autograd
from autograd_engine.vocabulary import Call, calling, leaf
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture(autouse=True)
def fresh_compiler(engine):
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def test_a_compiled_region_is_one_node_with_the_gradients_of_the_plain_one():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)).double()
    x = torch.randn(3, 4, dtype=torch.float64)
    expected = torch.autograd.grad(module(x).square().sum(), module.parameters())
    order = []
    for name, parameter in module.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda parameter, name=name: order.append(name))
    y = torch.compile(module, backend="aot_eager")(x)
    assert y.grad_fn.name() == "CompiledFunctionBackward"
    y.square().sum().backward()
    for parameter, gradient in zip(module.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    assert order == ["0.weight", "2.weight", "0.bias", "2.bias"] or sorted(order) == sorted(
        name for name, _ in module.named_parameters()
    )


def test_a_compiled_region_may_be_kept_and_run_again():
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    y = torch.compile(lambda v: (v.sin() * v).sum(), backend="aot_eager")(x)
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    torch.testing.assert_close(x.grad, 2 * first)


def test_compiled_autograd_compiles_the_backward():
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    graphs = []

    def compiler(graph):
        graphs.append(graph)
        return graph

    loss = x.sin().exp().sum()
    with compiled_autograd._enable(compiler):
        loss.backward()
    value = x.detach()
    torch.testing.assert_close(x.grad, value.cos() * value.sin().exp())
    assert len(graphs) == 1


def test_compiled_autograd_may_meet_nested_backwards():
    x = leaf(2)

    def inner(grad):
        with torch.enable_grad():
            (leaf(2) * 2).sum().backward()

    with compiled_autograd._enable(lambda graph: graph):
        Call.apply(x, inner).sum().backward()
        checkpoint(torch.sin, x, use_reentrant=True).sum().backward()
    torch.testing.assert_close(x.grad, 1 + x.detach().cos())


def test_compiled_autograd_is_over_when_its_block_is():
    seen = []
    with compiled_autograd._enable(lambda graph: graph):
        leaf(2).sin().sum().backward()
    calling(lambda: seen.append(torch._C._current_graph_task_id() >= 0)).backward()
    assert seen == [True]
