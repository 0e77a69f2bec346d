"""sort, topk, searchsorted, unique: what torch's CPU gives, ties, NaN and signed zeros included."""

import pytest
import torch

from mybackend.testing import cases, check_backward, check_forward

OPERATORS = """
    sort msort argsort topk searchsorted bucketize isin unique unique_consecutive kthvalue
"""
NAMES = frozenset(OPERATORS.split())
OTHERS = (torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool)
SPECIAL = torch.tensor([3.0, torch.nan, -0.0, 0.0, -torch.inf, torch.inf, -torch.nan, 3.0, -1.0, 0.0])


# Which of equal elements comes first is not defined for these; dtypes with few values have many equals.
TIES = frozenset(["sort", "argsort", "topk", "kthvalue"])


@pytest.mark.parametrize(
    "case", [*cases((torch.float32,), TIES), *cases((torch.float32, *OTHERS), NAMES - TIES)], ids=str
)
def test_an_operator_gives_what_the_cpu_gives(device, case):
    check_forward(case, device, limit=5)


@pytest.mark.parametrize("case", list(cases((torch.float64,), NAMES)), ids=str)
def test_an_operator_differentiates_as_on_the_cpu(device, case):
    check_backward(case, device, limit=3)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 65, 1000, 70_000])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16, torch.uint8])
def test_a_sort_keeps_the_order_of_equals(device, n, descending, dtype):
    torch.manual_seed(n)
    x = torch.randn(3, n).mul(9).to(dtype) if dtype.is_floating_point else torch.randint(0, 100, (3, n)).to(dtype)
    ours = x.to(device).sort(stable=True, descending=descending)
    theirs = x.sort(stable=True, descending=descending)
    assert torch.equal(ours.values.cpu(), theirs.values) and torch.equal(ours.indices.cpu(), theirs.indices)


@pytest.mark.parametrize("repeats", [1, 20])
@pytest.mark.parametrize("descending", [False, True])
def test_nan_is_the_greatest_and_zeros_are_equal(device, repeats, descending):
    x = SPECIAL.repeat(repeats)
    ours = x.to(device).sort(stable=True, descending=descending)
    theirs = x.sort(stable=True, descending=descending)
    assert torch.equal(ours.indices.cpu(), theirs.indices)
    torch.testing.assert_close(ours.values.cpu(), theirs.values, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_any_dimension_is_sorted(device, dim):
    x = torch.randn(37, 90, 5, generator=torch.Generator().manual_seed(1))
    for t in (x, x.transpose(0, 1), x[::2]):
        ours, theirs = t.to(device).sort(dim), t.sort(dim)
        assert torch.equal(ours.values.cpu(), theirs.values) and torch.equal(ours.indices.cpu(), theirs.indices)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (50, 5), (50, 50), (5000, 1), (5000, 64), (5000, 300), (100_000, 50)])
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.float16])
def test_topk_finds_the_extreme_values(device, n, k, largest, dtype):
    torch.manual_seed(n)
    x = torch.randn(4, n).mul(1000).to(dtype)
    ours, theirs = x.to(device).topk(k, largest=largest), x.topk(k, largest=largest)
    assert torch.equal(ours.values.cpu(), theirs.values)
    assert torch.equal(x.gather(1, ours.indices.cpu()), ours.values.cpu())
    unsorted = x.to(device).topk(k, largest=largest, sorted=False)
    assert torch.equal(unsorted.values.cpu().sort().values, theirs.values.sort().values)


def test_topk_counts_nan_as_the_greatest(device):
    ours, theirs = SPECIAL.to(device).topk(4), SPECIAL.topk(4)
    torch.testing.assert_close(ours.values.cpu(), theirs.values, equal_nan=True)


@pytest.mark.parametrize("n", [0, 1, 10, 5000])
def test_unique_returns_values_inverse_and_counts(device, n):
    x = torch.randint(0, 50, (n,), generator=torch.Generator().manual_seed(n))
    for f in (
        lambda t: t.unique(return_inverse=True, return_counts=True),
        lambda t: t.unique_consecutive(return_inverse=True, return_counts=True),
        lambda t: (t.view(-1, 2) % 3).unique(dim=0, return_inverse=True, return_counts=True) if n > 1 else (),
    ):
        for ours, theirs in zip(f(x.to(device)), f(x), strict=True):
            assert torch.equal(ours.cpu(), theirs)


def test_topk_rejects_a_k_beyond_the_size(device):
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        torch.ones(3, device=device).topk(4)
