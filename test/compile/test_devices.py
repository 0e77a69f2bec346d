"""Device indices, several devices, CPU scalars, streams and events inside compiled code."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("index", [0, 1])
def test_code_runs_on_the_device_of_its_inputs(index):
    x = torch.randn(40, 9, device=f"mybackend:{index}")
    compiled = torch.compile(lambda x: (x * 2 + torch.ones_like(x)).sum(0), fullgraph=True)
    result = compiled(x)
    assert result.device == x.device
    torch.testing.assert_close(result.cpu(), (x.cpu() * 2 + 1).sum(0))


def test_one_graph_uses_two_devices():
    def function(x, y):
        return (x + 1).to("mybackend:1") * y, y.sum()

    x, y = torch.randn(5, 7), torch.randn(5, 7)
    product, total = torch.compile(function, fullgraph=True)(x.to("mybackend:0"), y.to("mybackend:1"))
    assert product.device == total.device == torch.device("mybackend:1")
    torch.testing.assert_close(product.cpu(), (x + 1) * y)
    torch.testing.assert_close(total.cpu(), y.sum())


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: s * x,
        lambda s, x: x / s,
        lambda s, x: torch.maximum(s, x),
        lambda s, x: s.sin() * x,
        lambda s, x: torch.tensor(3.0) * x,
        lambda s, x: torch.where(x > 0, x, s),
    ],
)
def test_a_cpu_scalar_joins_the_device_of_the_other_operand(device, function):
    s, x = torch.tensor(2.5), torch.randn(40)
    result = torch.compile(function, fullgraph=True)(s, x.to(device))
    assert result.device == torch.device(device)
    torch.testing.assert_close(result.cpu(), function(s, x))


def test_a_compiled_optimizer_step_with_a_tensor_learning_rate(device):
    def train(where, compiled):
        torch.manual_seed(0)
        model = torch.nn.Linear(20, 5).to(where)
        optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.1))
        step = torch.compile(optimizer.step) if compiled else optimizer.step
        for _ in range(3):
            model(torch.ones(4, 20, device=where)).square().sum().backward()
            step()
            optimizer.zero_grad()
        return [p.detach().cpu() for p in model.parameters()]

    torch.testing.assert_close(train(device, True), train("cpu", False), rtol=1e-4, atol=1e-5)


def test_streams_and_events_inside_compiled_code(device):
    side = torch.mybackend.Stream(device)

    def function(x):
        main = torch.mybackend.current_stream()
        side.wait_stream(main)
        with side:
            y = x * 2
        main.wait_stream(side)
        return y + 1

    x = torch.randn(1000, device=device)
    torch.testing.assert_close(torch.compile(function)(x), x * 2 + 1)


def test_a_kernel_runs_on_the_current_stream(device):
    """A kernel behind work that is held back by an event must not overtake it."""
    compiled = torch.compile(lambda x: x + 1, fullgraph=True)
    x = torch.zeros(1000, device=device)
    compiled(x)
    stream = torch.mybackend.Stream(device)
    stream.wait_stream(torch.mybackend.current_stream(device))
    with torch.mybackend.stream(stream):
        y = compiled(compiled(x))
    torch.mybackend.current_stream(device).wait_stream(stream)
    assert torch.equal(y.cpu(), torch.full((1000,), 2.0))


def test_autocast_inside_compiled_code(device):
    def function(x, w):
        with torch.autocast("mybackend", dtype=torch.bfloat16):
            return (x @ w).relu()

    x, w = torch.randn(8, 16, device=device), torch.randn(16, 4, device=device)
    result = torch.compile(function, fullgraph=True)(x, w)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, function(x, w), rtol=2e-2, atol=2e-2)
