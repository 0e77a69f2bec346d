"""Convolutions of 1 x 1 that are small are matrix products, and so are their gradients; others stay calls."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code

pytestmark = pytest.mark.skipif("torch.mybackend.driver() != 'host'", reason="on a GPU cuDNN is called")

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def operands(channels: int = 9, filters: int = 10, kernel: int = 1, dtype: torch.dtype = torch.float32):
    x = torch.randn(3, channels, 7, 6, dtype=dtype).to(memory_format=torch.channels_last)
    w = torch.randn(filters, channels, kernel, kernel, dtype=dtype)
    return x, w, torch.randn(filters, dtype=dtype)


def gradients(function, device, *tensors):
    """The result and the gradients of its weighted sum, and the code that made them."""
    tensors = [t.detach().to(device).requires_grad_() for t in tensors]

    def run():
        result = function(*tensors)
        weights = torch.arange(result.numel(), device=device, dtype=result.dtype).reshape(result.shape) / result.numel()
        (result * weights).sum().backward()
        return result

    result, sources = run_and_get_code(run)
    return [result.detach(), *(t.grad for t in tensors)], "".join(sources)


def assert_agrees(function, device, *tensors, dynamic=None, options=None, **tolerance):
    expected, _ = gradients(function, "cpu", *tensors)
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, options=options)
    actual, code = gradients(compiled, device, *tensors)
    for mine, reference in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), reference, **tolerance)
    return code


def calls_of(code: str) -> set[str]:
    return {name for name in ("extern_kernels.convolution", "convolution_backward.default") if f"{name}(" in code}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("stride", [1, 2, (1, 3), (8, 1)], ids=str)
def test_forward_and_backward_are_products(device, stride, dynamic):
    def function(x, w, b):
        return F.conv2d(x.cos(), w, b, stride).relu()

    code = assert_agrees(function, device, *operands(), dynamic=dynamic, **TOLERANCE)
    assert bool(calls_of(code)) == (dynamic and stride != 1)


@pytest.mark.parametrize("options", [{}, {"max_autotune": True}], ids=["", "tuned"])
def test_places_that_are_no_symbols_are_left_to_a_call(device, options):
    def function(x, w, b):
        return F.conv2d(F.max_pool2d(x, 2, stride=1), w, b).relu()

    code = assert_agrees(function, device, *operands(), dynamic=True, options=options, **TOLERANCE)
    assert calls_of(code)


def test_no_template_of_triton_is_considered(device, monkeypatch):
    def is_big_gpu(device):
        raise AssertionError("the number of multiprocessors matters to Triton only, and few are a warning")

    monkeypatch.setattr(torch._inductor.utils, "is_big_gpu", is_big_gpu)
    assert_agrees(lambda x, w, b: F.conv2d(x, w, b), device, *operands(kernel=3), **TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_types(device, dtype):
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    code = assert_agrees(lambda x, w, b: F.conv2d(x.cos(), w, b, 2).relu(), device, *operands(dtype=dtype), **tolerance)
    assert not calls_of(code)


def test_gradients_that_nobody_wants_are_not_computed(device):
    x, w, _ = operands()
    w = w.to(device).requires_grad_()
    _, sources = run_and_get_code(
        lambda: torch.compile(lambda x, w: F.conv2d(x, w).square().sum())(x.to(device), w).backward()
    )
    expected = torch.func.grad(lambda w: F.conv2d(x, w).square().sum())(w.detach().cpu())
    torch.testing.assert_close(w.grad.cpu(), expected, **TOLERANCE)
    assert not calls_of("".join(sources))


@pytest.mark.parametrize(
    "options",
    [{"padding": 1}, {"groups": 3}, {"kernel": 3}, {"channels": 300, "filters": 300}],
    ids=["padded", "grouped", "3 x 3", "large"],
)
def test_what_stays_a_call(device, options):
    groups = options.get("groups", 1)
    x, w, b = operands(options.get("channels", 9), options.get("filters", 12), options.get("kernel", 1))

    def function(x, w, b):
        return F.conv2d(x.cos(), w[:, : w.shape[1] // groups], b, padding=options.get("padding", 0), groups=groups)

    code = assert_agrees(function, device, x, w, b, rtol=1e-3, atol=1e-3)
    assert "convolution_backward.default" in calls_of(code)


def test_contiguous_gradients_stay_a_call(device):
    x, w, b = operands()
    code = assert_agrees(lambda x, w, b: F.conv2d(x.contiguous(), w, b), device, x.contiguous(), w, b, **TOLERANCE)
    assert "convolution_backward.default" in calls_of(code)
