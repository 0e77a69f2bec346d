"""Scans are fused with what is around them: along rows and columns, in every dtype, forward and backward."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch._inductor.utils import run_and_get_code
from torch.utils._pytree import tree_map

SCANS = {
    "cumsum": lambda x, dim: x.cumsum(dim),
    "cumprod": lambda x, dim: x.cumprod(dim),
    "cummax": lambda x, dim: x.cummax(dim),
    "cummin": lambda x, dim: x.cummin(dim),
    "logcumsumexp": lambda x, dim: x.logcumsumexp(dim),
}
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture
def fused(device):
    """fused(function, *arguments): the compiled function calls no operator, and returns what the eager one does."""

    def check(function, *arguments: Tensor, kernels: int = 1, expected=None, **tolerance) -> None:
        compiled = torch.compile(function, fullgraph=True)
        result, (code,) = run_and_get_code(compiled, *(a.to(device) for a in arguments))
        expected = function(*arguments) if expected is None else expected
        torch.testing.assert_close(tree_map(lambda x: x.cpu(), result), expected, **tolerance)
        assert "= torch.ops.aten." not in code
        assert code.count("MB_KERNEL") == kernels

    return check


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_each_scan_along_each_dimension(fused, name, dim):
    fused(lambda x: SCANS[name](x * 0.5, dim), torch.randn(9, 67, 34), **CLOSE)


@pytest.mark.parametrize("shape", [(2, 5000), (300, 7), (7, 300), (3, 64), (3, 65), (3, 63)])
def test_rows_that_fill_no_round(fused, shape):
    fused(lambda x: (x.cumsum(1) + 1, x.cumsum(0) + 1), torch.randn(shape), kernels=2, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("dim", [0, 1])
def test_floating_point_dtypes(fused, dtype, dim):
    low = dtype != torch.float64
    x = torch.randn(33, 70).to(dtype)
    fused(lambda x: (x.abs() * 0.1).cumsum(dim), x, rtol=2e-2 if low else 1e-12, atol=2e-2 if low else 1e-12)
    fused(lambda x: x.cummax(dim), x)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("dim", [0, 1])
def test_integers_are_summed_in_64_bits(fused, dtype, dim):
    x = torch.randint(0, 2 if dtype == torch.bool else 5, (33, 70)).to(dtype)
    fused(lambda x: x.cumsum(dim), x)
    fused(lambda x: x.cumsum(dim, dtype=torch.float32), x)
    fused(lambda x: (x + 1).cumprod(dim), x)
    fused(lambda x: x.cummax(dim), x)


@pytest.mark.parametrize("dim", [0, 1])
def test_nan_and_infinity_go_on(fused, dim):
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 3, 2] * 40, [-inf, 1, inf, -inf] * 40, [-inf] * 160, [0.0, -0.0, 2, inf] * 40])
    x = x if dim == 1 else x.t().contiguous()
    for scan in SCANS.values():
        fused(lambda x, scan=scan: scan(x, dim), x, equal_nan=True, **CLOSE)


@pytest.mark.parametrize("dim", [0, 1])
def test_among_equals_the_last_index_is_reported(fused, dim):
    x = torch.randint(0, 3, (40, 50)).float()
    fused(lambda x: (x.cummax(dim), x.cummin(dim)), x, kernels=1)


def test_a_scan_is_fused_with_what_comes_before_and_after(fused):
    x = torch.randn(33, 170)
    fused(lambda x: (x.sin() * 2).cumsum(1).exp() + x, x, **CLOSE)
    fused(lambda x: x.softmax(-1).cumsum(-1), x, **CLOSE)
    fused(lambda x: x.softmax(-1).cumsum(-1).sum(-1), x, **CLOSE)
    fused(lambda x: (x.cumsum(1).cumsum(1), x.argmax(1)), x, rtol=1e-3, atol=1e-3)


def test_an_index_that_is_checked_before_a_scan_serves_after_it(fused):
    w, v, i = torch.randn(50), torch.randn(50), torch.randint(0, 50, (20, 90))
    fused(lambda w, v, i: w[i].cumsum(1) * v[i], w, v, i, **CLOSE)


def test_views_are_scanned_where_they_lie(fused):
    x = torch.randn(12, 20, 30)
    fused(lambda x: (x.permute(2, 0, 1).cumsum(-1) * 2).flatten(1).cumsum(-1), x, kernels=2, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
def test_gradients(agree, name, dim):
    agree(lambda x: SCANS[name](x * 0.5 + 0.5, dim).sin(), torch.rand(20, 30), grad=True, **CLOSE)


@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_cummax(agree, dim):
    agree(lambda x: x.cummax(dim)[0] * 2, torch.randn(20, 30), grad=True, **CLOSE)


@pytest.mark.parametrize("dim", [0, 1])
def test_sizes_may_be_dynamic(device, dim):
    compiled = torch.compile(lambda x: (x + 1).cumsum(dim) * 2, fullgraph=True, dynamic=True)
    for shape in ((3, 5), (70, 64), (200, 129)):
        x = torch.randn(shape)
        torch.testing.assert_close(compiled(x.to(device)).cpu(), (x + 1).cumsum(dim) * 2, **CLOSE)


def test_an_associative_scan_combines_as_its_function_says(fused):
    def decayed(before, after):
        """The recurrence h = a h + b, as in a state space model."""
        (a, h), (b, x) = before, after
        return a * b, b * h + x

    a, x = torch.rand(3, 90, 8), torch.randn(3, 90, 8)
    for dim in (1, 2):
        h = torch.zeros_like(x)
        state = torch.zeros_like(x.select(dim, 0))
        for step in range(x.shape[dim]):
            state = a.select(dim, step) * state + x.select(dim, step)
            h.select(dim, step).copy_(state)
        fused(lambda a, x, dim=dim: associative_scan(decayed, (a, x), dim)[1] * 2, a, x, expected=h * 2, **CLOSE)


def test_a_long_sum_keeps_its_digits(fused):
    x = torch.full((200, 1 << 14), 0.1)
    fused(lambda x: x.cumsum(1) + 0, x, rtol=1e-4, atol=0)
