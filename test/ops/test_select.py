"""Order statistics and counts agree with torch's CPU."""

import math

import pytest
import torch

from mybackend.testing import opinfo

NAMES = frozenset(
    ["kthvalue", "median", "nanmedian", "mode", "bincount", "histc", "isin", "renorm", "quantile", "nanquantile"]
)
# Of equal values any may be named, so samples of integers are compared below, by value.
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def same(ours, theirs, **tolerances):
    torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, **tolerances)


@pytest.mark.parametrize("case", opinfo.cases(DTYPES, NAMES), ids=str)
def test_opinfo_samples_agree_with_the_cpu(case, device):
    assert opinfo.check_forward(case, device, limit=5) > 0


@pytest.mark.parametrize("case", opinfo.cases((torch.float64,), NAMES), ids=str)
def test_opinfo_gradients_agree_with_the_cpu(case, device):
    opinfo.check_backward(case, device, limit=3)


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (3, 5000), (3000, 40)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int64, torch.int8])
def test_the_kth_value_is_the_one_sorting_puts_there(shape, dtype, device, no_fallback):
    x = (torch.randn(shape) * 50).to(dtype)
    for dim in (0, 1):
        k = x.size(dim) // 3 + 1
        values, indices = x.to(device).kthvalue(k, dim)
        same(values, x.kthvalue(k, dim).values)
        same(x.gather(dim, indices.cpu().unsqueeze(dim)).squeeze(dim), values.cpu())
        same(x.to(device).median(dim).values, x.median(dim).values)


def test_a_nan_is_the_median_of_its_line_unless_passed_over(device, no_fallback):
    x = torch.randn(3, 9)
    x[1, [2, 5]] = math.nan
    x[2] = math.nan
    for name in ("median", "nanmedian"):
        ours, theirs = getattr(x.to(device), name)(1), getattr(x, name)(1)
        same(ours.values, theirs.values)
        same(getattr(x.to(device), name)(), getattr(x, name)())
    assert x.to(device).median(1).indices[1].item() == 2


def test_both_zeros_and_infinities_are_in_order(device):
    x = torch.tensor([0.0, -0.0, math.inf, -math.inf, 1.0, math.nan])
    for k in range(1, 7):
        same(x.to(device).kthvalue(k).values, x.kthvalue(k).values)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: torch.ones(3, device=d).kthvalue(4),
        lambda d: torch.ones(3, device=d).kthvalue(0),
        lambda d: torch.ones(0, 2, device=d).kthvalue(1, 0),
        lambda d: torch.ones(0, 2, device=d).median(0),
        lambda d: torch.tensor([1, -1], device=d).bincount(),
        lambda d: torch.tensor([1, 1], device=d).bincount(weights=torch.ones(3, device=d)),
        lambda d: torch.tensor([1, 1], device=d).bincount(minlength=-1),
    ],
)
def test_errors_read_as_on_the_cpu(call, device):
    with pytest.raises(Exception) as theirs:
        call("cpu")
    with pytest.raises(type(theirs.value)) as ours:
        call(device)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
