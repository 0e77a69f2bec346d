"""Reductions of every kind, along rows, columns and everything, fused with what is around them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code

KINDS = {
    "sum": lambda x, dim: x.sum(dim),
    "mean": lambda x, dim: x.mean(dim),
    "prod": lambda x, dim: (x * 0.5).prod(dim),
    "amax": lambda x, dim: x.amax(dim),
    "amin": lambda x, dim: x.amin(dim),
    "var": lambda x, dim: x.var(dim),
    "std_mean": lambda x, dim: torch.std_mean(x, dim),
    "norm": lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    "any": lambda x, dim: (x > 2).any(dim),
    "all": lambda x, dim: (x > -2).all(dim),
    "argmax": lambda x, dim: x.argmax(dim),
    "argmin": lambda x, dim: x.argmin(dim),
    "max with index": lambda x, dim: x.max(dim),
    "logsumexp": lambda x, dim: x.logsumexp(dim),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_each_kind_along_each_dimension(agree, kind, dim):
    agree(lambda x: KINDS[kind](x + 1, dim), torch.randn(19, 67, 34), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(300, 7), (7, 300), (1, 5000), (5000, 1), (130, 129)])
def test_shapes_that_fill_no_vector(agree, shape):
    x = torch.randn(shape)
    agree(lambda x: (x.sum(0), x.sum(1), x.amax(0), x.amax(1), x.argmax(0), x.argmin(1)), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_integers(agree, dtype):
    x = torch.randint(0, 2, (20, 30)).to(dtype) if dtype == torch.bool else torch.randint(-5, 5, (20, 30)).to(dtype)
    agree(lambda x: (x.sum(1), x.prod(1), x.amax(0), x.amin(1), (x > 0).any(0)), x)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", ["sum", "prod"])
def test_truth_values_of_every_type_are_reduced(agree, kind, dim):
    """Inductor's own CPU backend fails on some."""
    for x in (torch.rand(20, 30) > 0.1, torch.randint(-1, 2, (20, 30)), torch.randint(0, 2, (20, 30)) * 0.5):
        agree(lambda x: getattr(x, kind)(dim, dtype=torch.bool), x, dynamic=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_numbers_are_summed_in_float(agree, dtype):
    x = torch.randn(33, 700).to(dtype)
    agree(lambda x: ((x * x).sum(1), x.softmax(-1), x.amax(0)), x, rtol=2e-2, atol=2e-2)


def test_double(agree):
    agree(lambda x: (x.exp() * 1e-30).sum(1), torch.randn(33, 70, dtype=torch.float64))


def test_nan_wins_and_ties_go_to_the_first(agree):
    nan = float("nan")
    x = torch.tensor([[1.0, 3, 3, 2] * 40, [1.0, nan, 5, nan] * 40, [-float("inf")] * 160])
    agree(lambda x: (x.argmax(1), x.argmin(1), x.amax(1), x.amin(1), x.max(1), x.min(0)), x, equal_nan=True)
    agree(lambda x: (x.argmax(0), x.argmin(0), x.amax(0), x.amin(0)), x.t().contiguous(), equal_nan=True)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x.permute(1, 0) * 2,
        lambda x: x.view(3, 11, 70).permute(2, 0, 1),
        lambda x: x[:, ::2],
    ],
)
def test_argmax_of_everything_counts_in_the_order_of_the_tensor(agree, view):
    agree(lambda x: (view(x).argmax(), view(x).argmin()), torch.randn(33, 70))


def test_several_dimensions_at_once(agree):
    x = torch.randn(6, 5, 40, 7)
    agree(lambda x: (x.sum((0, 2)), x.amax((1, 3)), x.mean((2, 3)), x.var((0, 2, 3))), x, rtol=1e-4, atol=1e-4)


def test_large_reductions_are_split(agree):
    agree(lambda x: (x.sum(), x.var(), x.amax()), torch.randn(300000), rtol=1e-4, atol=1e-2)
    agree(lambda x: x.argmax(), torch.randn(300000))
    agree(lambda x: x.sum(0), torch.randn(40000, 8), rtol=1e-3, atol=1e-3)


def test_a_sum_of_many_small_terms_keeps_its_digits(agree):
    agree(lambda x: (x + 0).sum(1), torch.full((4, 1 << 20), 0.1), rtol=1e-5, atol=0)


@pytest.mark.parametrize("shape", [(33, 70), (70, 1000), (3, 4)])
def test_softmax_and_log_softmax(agree, shape):
    agree(lambda x: (x.softmax(-1), x.log_softmax(0)), torch.randn(shape), grad=True, rtol=1e-4, atol=1e-5)


def test_cross_entropy(agree):
    agree(lambda x, t: F.cross_entropy(x, t), torch.randn(33, 70), torch.randint(0, 70, (33,)), grad=True)


@pytest.mark.parametrize("width", [70, 768])
def test_layer_and_rms_norm(agree, width):
    x, w, b = torch.randn(33, width), torch.randn(width), torch.randn(width)
    agree(lambda x, w, b: F.layer_norm(x, (width,), w, b), x, w, b, grad=True, rtol=1e-4, atol=1e-4)
    agree(lambda x, w: F.rms_norm(x, (width,), w), x, w, grad=True, rtol=1e-4, atol=1e-4)


def test_group_and_batch_norm(agree):
    x = torch.randn(4, 10, 7, 9)
    agree(lambda x: F.group_norm(x, 5), x, grad=True, rtol=1e-4, atol=1e-4)

    def batch_norm(x, mean, var, w, b):
        return F.batch_norm(x, mean, var, w, b, training=True), mean, var

    statistics = torch.zeros(10), torch.ones(10)
    compiled_x, w, b = torch.randn(4, 10, 7, 9), torch.randn(10), torch.randn(10)
    agree(batch_norm, compiled_x, *statistics, w, b, rtol=1e-4, atol=1e-4)


def test_moments_that_come_in_parts(agree):
    """A split variance combines partial moments (Welford), with the mean far from zero."""
    agree(lambda x: torch.var_mean(x + 100), torch.randn(1, 200000), rtol=1e-3, atol=1e-3)


def test_a_sort_and_a_search(agree):
    x = torch.randn(33, 70)
    agree(lambda x: (x.sort(1)[0], x.topk(3, 1)[1]), x)
    edges = torch.tensor([-1.0, 0, 0.5, 1])
    agree(lambda x, e: (torch.bucketize(x, e), torch.bucketize(x, e, right=True)), x, edges)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_search_is_fused(agree, side):
    rows, values = torch.randn(20, 50), torch.randn(20, 9)
    rows[:, :20] = rows[:, :1]
    ordered, order = rows.sort(1)
    agree(lambda e, v: torch.searchsorted(e, v * 2, side=side, out_int32=True) + 1, ordered, values)
    agree(lambda e, v, s: torch.searchsorted(e, v, side=side, sorter=s) + 1, rows, values, order)
    agree(lambda e, v: torch.searchsorted(e, v, side=side) + 1, ordered[0].contiguous(), values)


@pytest.mark.parametrize("channels", [3, 16, 40, 64], ids=str)
def test_short_rows_with_bytes_among_the_operands(device, channels):
    """A compiler would take 64 bytes, and thus 64 elements, at a time: shorter rows say how many."""
    mask, x = torch.rand(200, channels) < 0.5, torch.randn(200, channels)
    compiled = torch.compile(lambda mask, x: torch.where(mask, x, 0).sum(0))
    actual, (source,) = run_and_get_code(compiled, mask.to(device), x.to(device))
    torch.testing.assert_close(actual.cpu(), torch.where(mask, x, 0).sum(0))
    assert ("simdlen(" in source) == (channels in (16, 40))
