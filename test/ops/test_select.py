"""Order statistics and counts agree with torch's CPU."""

import math

import pytest
import torch

from mybackend.testing import opinfo

NAMES = frozenset(
    [
        "kthvalue",
        "median",
        "nanmedian",
        "mode",
        "bincount",
        "histc",
        "histogram",
        "histogramdd",
        "isin",
        "renorm",
        "quantile",
        "nanquantile",
    ]
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


def histogram(where, x, **options):
    moved = {key: value.to(where) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    return torch.histogram(x.to(where), **moved)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        dict(bins=7),
        dict(bins=7, range=(-1.0, 0.5)),
        dict(bins=3, range=(2.0, 2.0)),
        dict(bins=torch.tensor([-2.0, -0.5, 0.0, 0.1, 3.0])),
        dict(bins=5, weight=torch.linspace(0, 2, 60).view(6, 10)),
    ],
    ids=["equal", "range", "empty range", "given", "weights"],
)
def test_a_histogram_has_the_bins_and_counts_of_the_cpus(options, density, device, no_fallback):
    x = torch.linspace(-2, 2, 60).view(6, 10) ** 3 / 4
    for ours, theirs in zip(
        histogram(device, x, density=density, **options), histogram("cpu", x, density=density, **options), strict=True
    ):
        same(ours, theirs)


def test_what_is_no_number_or_outside_is_in_no_bin_and_the_last_edge_is_in_the_last(device, no_fallback):
    x = torch.tensor([0.0, 1.0, float("nan"), float("inf"), -0.1, 1.0001], device=device)
    assert torch.histogram(x, bins=4, range=(0.0, 1.0)).hist.tolist() == [1, 0, 0, 1]


def test_histograms_of_bad_arguments_are_refused_in_upstreams_words(device):
    x = torch.rand(4, 2, device=device)
    for message, call in {
        r"bins must be > 0": lambda: torch.histogram(x, bins=0),
        r"range \[.*inf\] is not finite": lambda: torch.histogram(x / 0, bins=3),
        r"min should not exceed max": lambda: torch.histogram(x, bins=3, range=(1.0, 0.0)),
        r"should have the same dtype": lambda: torch.histogram(x, bins=torch.rand(3, device=device).double()),
        r"expected 2 sequences of bin edges": lambda: torch._histogramdd_from_bin_tensors(x, [x[:, 0]]),
    }.items():
        with pytest.raises(RuntimeError, match=message):
            call()
