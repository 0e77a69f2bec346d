"""The replacement autograd engine runs the backward of compiled code: one node, on the queue of the device."""

from __future__ import annotations

import pytest
import torch

from mybackend.autograd import is_enabled, trace, use_engine


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 3))


@pytest.mark.parametrize("engine", ["mybackend", "stock"])
def test_gradients_of_compiled_code_are_those_of_eager_code_under_either_engine(device, engine):
    x = torch.randn(5, 7)
    reference, ours = model(), model().to(device)
    reference(x).square().sum().backward()
    with use_engine(engine):
        assert is_enabled() == (engine == "mybackend")
        torch.compile(ours, fullgraph=True)(x.to(device)).square().sum().backward()
    for mine, theirs in zip(ours.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad)


def test_the_compiled_backward_is_one_node_on_the_queue_of_the_device(device):
    module = model().to(device)
    compiled = torch.compile(module, fullgraph=True)
    loss = compiled(torch.randn(5, 7, device=device)).square().sum()
    with use_engine("mybackend"), trace() as recorded:
        loss.backward()
    (backward,) = recorded.backwards
    assert not backward.failed
    (node,) = [node for node in recorded.nodes if node.name == "CompiledFunctionBackward"]
    assert node.device == str(torch.device(device))
    assert node.stream == torch.mybackend.current_stream(device).stream_id
    assert {node.name for node in recorded.nodes} == {
        "SumBackward0", "PowBackward0", "CompiledFunctionBackward", "torch::autograd::AccumulateGrad",
    }  # fmt: skip
    accumulated = [node for node in recorded.nodes if node.name == "torch::autograd::AccumulateGrad"]
    assert len(accumulated) == len(list(module.parameters()))


def test_two_compiled_regions_are_two_nodes_in_the_order_of_the_plain_backward(device):
    first, second = model().to(device), torch.nn.Linear(3, 2).to(device)
    x = torch.randn(5, 7, device=device)
    loss = torch.compile(second)(torch.compile(first)(x).sin()).sum()
    with use_engine("mybackend"), trace() as recorded:
        loss.backward()
    names = [node.name for node in recorded.nodes if "AccumulateGrad" not in node.name]
    assert names == ["SumBackward0", "CompiledFunctionBackward", "SinBackward0", "CompiledFunctionBackward"]
    assert {node.device for node in recorded.nodes} == {str(torch.device(device))}


def test_an_error_in_a_compiled_backward_leaves_the_engine_usable(device):
    class Refused(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("refused on purpose")

    w = torch.randn(4, 4, device=device, requires_grad=True)
    compiled = torch.compile(lambda w: (w @ w).tanh(), fullgraph=True)
    with use_engine("mybackend"):
        loss = Refused.apply(compiled(w)).sum()
        with trace() as recorded, pytest.raises(ValueError, match="refused on purpose"):
            loss.backward()
        assert [backward.failed for backward in recorded.backwards] == [True]
        assert w.grad is None
        compiled(w).sum().backward()
    reference = w.detach().cpu().requires_grad_()
    (reference @ reference).tanh().sum().backward()
    torch.testing.assert_close(w.grad.cpu(), reference.grad)
