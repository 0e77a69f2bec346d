"""Cumulative operations agree with torch's CPU along every dimension and however the input lies in memory."""

import math

import pytest
import torch

from mybackend.testing import opinfo

NAMES = frozenset(["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "cumulative_trapezoid", "trapezoid"])
DTYPES = (torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.complex64)


def same(ours, theirs, **tolerances):
    torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, **tolerances)


@pytest.mark.parametrize("case", opinfo.cases(DTYPES, NAMES), ids=str)
def test_opinfo_samples_agree_with_the_cpu(case, device):
    assert opinfo.check_forward(case, device, limit=4) > 0


@pytest.mark.parametrize("case", opinfo.cases((torch.float64,), NAMES), ids=str)
def test_opinfo_gradients_agree_with_the_cpu(case, device):
    opinfo.check_backward(case, device, limit=2)


OPERATIONS = {
    "cumsum": lambda x, d: x.cumsum(d),
    "cumprod": lambda x, d: x.cumprod(d),
    "logcumsumexp": lambda x, d: x.logcumsumexp(d),
    "cummax": lambda x, d: x.cummax(d).indices,
    "cummin": lambda x, d: x.cummin(d).values,
}


@pytest.mark.parametrize("shape", [(1, 7), (3, 5), (30000, 9), (3, 90000), (700, 513), (5000, 64), (40, 17)], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_layout_and_size_runs_along_each_dimension(name, transposed, shape, device, no_fallback):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    y = x.to(device)
    if transposed:
        x, y = x.T, y.T
    for dim in (0, 1):
        same(OPERATIONS[name](y, dim), OPERATIONS[name](x, dim), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
def test_strides_of_input_and_output_are_followed(dim, device, no_fallback):
    x = torch.randn(4, 40, 3, 50).permute(2, 0, 3, 1)
    y = x.to(device)
    same(y.cumsum(dim), x.cumsum(dim), rtol=1e-5, atol=1e-5)
    out = torch.empty(50, 4, 40, 3, device=device).permute(3, 1, 0, 2)
    same(torch.cumsum(y, dim, out=out), x.cumsum(dim), rtol=1e-5, atol=1e-5)
    same(y[..., ::2].cumsum(dim), x[..., ::2].cumsum(dim), rtol=1e-5, atol=1e-5)


def test_a_tensor_may_be_its_own_output(device, no_fallback):
    x = torch.randn(7, 5000)
    for dim in (0, 1):
        same(x.to(device).cumsum_(dim), x.cumsum(dim), rtol=1e-5, atol=1e-4)


def test_of_equal_values_the_last_is_named_and_a_nan_stays(device):
    x = torch.tensor([1.0, 3, 3, 2, math.nan, 5, math.nan, 1])
    for call in (torch.cummax, torch.cummin):
        for ours, theirs in zip(call(x.to(device), 0), call(x, 0), strict=True):
            same(ours, theirs)


def test_infinities_pass_through_logcumsumexp(device):
    for values in ([-math.inf, -math.inf, 0.0], [math.inf, 1.0], [0.0, math.inf, -math.inf], [1.0, math.nan, 2.0]):
        x = torch.tensor(values)
        same(x.to(device).logcumsumexp(0), x.logcumsumexp(0))


@pytest.mark.parametrize("call", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
def test_nothing_and_scalars_are_handled_as_on_the_cpu(call, device):
    for x in (torch.empty(0), torch.empty(2, 0), torch.tensor(2.5)):
        ours, theirs = getattr(x.to(device), call)(0), getattr(x, call)(0)
        for mine, other in zip(ours, theirs, strict=True) if isinstance(theirs, tuple) else [(ours, theirs)]:
            same(mine, other)
    with pytest.raises(IndexError, match="Dimension out of range"):
        getattr(torch.ones(2, device=device), call)(1)


def test_results_do_not_depend_on_the_number_of_threads(device):
    x = torch.randn(1 << 20, device=device)
    threads = torch.get_num_threads()
    sums = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            sums.append([x.cumsum(0).cpu(), x.view(-1, 64).cumsum(0).cpu()])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(*sums, strict=True))
