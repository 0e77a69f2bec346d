"""Reductions: values, indices, dtypes, shapes and errors are those of torch's CPU, whatever dimensions are reduced and
however the input lies in memory."""

import math

import pytest
import torch

from mybackend.testing import opinfo

NAMES = frozenset(
    [
        "all",
        "amax",
        "amin",
        "aminmax",
        "any",
        "argmax",
        "argmin",
        "count_nonzero",
        "dist",
        "equal",
        "linalg.norm",
        "linalg.vector_norm",
        "logsumexp",
        "max.reduction_no_dim",
        "max.reduction_with_dim",
        "mean",
        "min.reduction_no_dim",
        "min.reduction_with_dim",
        "nanmean",
        "nansum",
        "norm",
        "norm.inf",
        "prod",
        "std",
        "std.unbiased",
        "std_mean",
        "std_mean.unbiased",
        "sum",
        "trace",
        "var",
        "var.unbiased",
        "var_mean",
        "var_mean.unbiased",
    ]
)
DTYPES = (torch.float32, torch.bfloat16, torch.int32, torch.bool, torch.complex64)
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T.contiguous().T,
    "every second": lambda x: x.unsqueeze(2).expand(-1, -1, 2).contiguous()[:, :, 1],
    "expanded": lambda x: x[:1].expand(x.shape),
}


def same(ours, theirs, **tolerances):
    torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, **tolerances)


@pytest.mark.parametrize("case", opinfo.cases(DTYPES, NAMES), ids=str)
def test_opinfo_samples_agree_with_the_cpu(case, device):
    assert opinfo.check_forward(case, device, limit=4) > 0


@pytest.mark.parametrize("case", opinfo.cases((torch.float64,), NAMES), ids=str)
def test_opinfo_gradients_agree_with_the_cpu(case, device):
    opinfo.check_backward(case, device, limit=2)


OPERATIONS = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d),
    "amax": lambda x, d: x.amax(d),
    "argmin": lambda x, d: x.argmin(d),
    "max": lambda x, d: x.max(d).indices,
    "var": lambda x, d: x.var(d),
    "norm": lambda x, d: x.norm(3, d) if x.size(0) < 10000 else x.double().norm(3, d).float(),
    "any": lambda x, d: x.int().any(d),
    "count_nonzero": lambda x, d: x.int().count_nonzero(d),
}


# Shapes on both sides of every choice of the plan: narrow and wide columns, short and long rows, one part and several.
@pytest.mark.parametrize("shape", [(1, 7), (3, 5), (70000, 3), (9, 40000), (700, 513), (2100, 64), (40, 17)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_layout_and_size_reduces_over_each_dimension(name, layout, shape, device):
    values = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    x, ours = LAYOUTS[layout](values), LAYOUTS[layout](values.to(device))
    for dim in (0, 1):
        same(OPERATIONS[name](ours, dim), OPERATIONS[name](x, dim), rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2), (1, 3), (0, 3), (0, 1, 2, 3)], ids=str)
def test_several_dimensions_are_reduced_at_once(dims, device, no_fallback):
    x = torch.randn(6, 5, 33, 20).permute(2, 0, 3, 1)
    y = x.to(device)
    for keepdim in (False, True):
        same(y.sum(dims, keepdim), x.sum(dims, keepdim), rtol=2e-5, atol=1e-4)
        same(y.amin(dims, keepdim), x.amin(dims, keepdim))
        same(y.var(dims, keepdim=keepdim), x.var(dims, keepdim=keepdim), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 5, 3000, 300000])
def test_the_first_of_equal_values_is_named(size, device):
    x = torch.zeros(size)
    assert x.to(device).argmax().item() == 0
    assert x.to(device).max(0).indices.item() == 0
    x[size // 2 :] = 1
    assert x.to(device).argmax().item() == size // 2
    assert x.view(-1, 1).expand(-1, 40).to(device).argmax(0).unique().tolist() == [size // 2]


@pytest.mark.parametrize("shape", [(10,), (5000,), (300000,), (600, 40), (40, 600)], ids=str)
def test_a_nan_wins_and_the_first_one_is_named(shape, device):
    x = torch.randn(shape)
    x.view(-1)[[x.numel() // 3, x.numel() // 2]] = math.nan
    y = x.to(device)
    assert y.argmax().item() == y.argmin().item() == x.numel() // 3
    assert y.max().isnan().item() and y.min().isnan().item()
    for dim in range(x.dim()):
        same(y.amax(dim), x.amax(dim))
        same(y.min(dim).indices, x.min(dim).indices)


def test_infinities_are_ordinary_values(device):
    x = torch.full((3, 50), -math.inf)
    same(x.to(device).max(1).values, x.max(1).values)
    same(x.to(device).argmax(1), x.argmax(1))
    same((-x).to(device).argmin(1), (-x).argmin(1))


def test_half_types_are_added_in_float(device):
    x = torch.ones(70001)
    for dtype in (torch.bfloat16, torch.float16):
        assert x.to(device, dtype).mean().item() == 1
        assert x.to(device, dtype).sum(dtype=torch.float32).item() == 70001
        assert (
            x.to(device, dtype).view(-1, 1).expand(-1, 3).contiguous().sum(0, dtype=torch.float32).tolist()
            == [70001] * 3
        )


@pytest.mark.parametrize("shape", [(1, -1), (-1, 1), (4, -1), (-1, 4), (64, -1), (-1, 64), (-1, 4096)], ids=str)
def test_a_long_sum_is_nearly_exact(shape, device):
    x = (torch.rand(1 << 22) + 0.1).view(shape)
    exact = x.double().sum(0)
    error = lambda result: ((result.cpu().double() - exact) / exact).abs().max().item()  # noqa: E731
    assert error(x.to(device).sum(0)) < max(3e-7, 2 * error(x.sum(0)))


def test_results_do_not_depend_on_the_number_of_threads(device):
    x = torch.randn(1 << 20, device=device)
    threads = torch.get_num_threads()
    seen = set()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            seen.add(
                (
                    x.sum().item(),
                    x.view(-1, 8).sum(0).sum().item(),
                    x.var().item(),
                    x.view(64, -1).norm(dim=1).sum().item(),
                )
            )
    finally:
        torch.set_num_threads(threads)
    assert len(seen) == 1


@pytest.mark.parametrize("correction", [0, 1, 2.5])
def test_variance_is_exact_far_from_zero(correction, device):
    x = torch.randn(6, 2000, dtype=torch.float64) + 1e4
    wide = x.float().double().var(1, correction=correction)
    same(x.float().to(device).var(1, correction=correction), wide.float(), rtol=1e-3, atol=0)
    same(x.float().T.contiguous().to(device).var(0, correction=correction), wide.float(), rtol=1e-3, atol=0)
    for ours, theirs in zip(
        torch.std_mean(x.to(device), 0, correction=correction),
        torch.std_mean(x, 0, correction=correction),
        strict=True,
    ):
        same(ours, theirs)


def test_degrees_of_freedom_below_one_warn_and_give_what_the_cpu_gives(device):
    x = torch.randn(3, 1)
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        same(x.to(device).var(1), x.var(1))


@pytest.mark.parametrize("call", ["sum", "prod", "mean", "var", "norm", "all", "any", "nansum", "count_nonzero"])
def test_reductions_of_nothing_give_what_the_cpu_gives(call, device, no_fallback):
    for shape, arguments in (((0,), ()), ((0, 3), (0,)), ((3, 0), (1,)), ((2, 0), (0,))):
        x = torch.empty(shape)
        if call == "norm" and arguments:
            arguments = (2, *arguments)
        same(getattr(x.to(device), call)(*arguments), getattr(x, call)(*arguments))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.max(),
        lambda x: x.amax(),
        lambda x: x.argmax(),
        lambda x: x.max(0),
        lambda x: x.aminmax(),
        lambda x: x.sum(3),
        lambda x: x.sum((0, 0)),
        lambda x: x.long().mean(),
        lambda x: x.long().var(),
        lambda x: x.trace(),
        lambda x: torch.sum(x, 0, dtype=torch.int32, out=torch.empty(0, device=x.device)),
        lambda x: x.long().norm(),
    ],
)
def test_errors_read_as_on_the_cpu(call, device):
    x = torch.empty(0, 3, 0)
    with pytest.raises(Exception) as theirs:
        call(x)
    with pytest.raises(type(theirs.value)) as ours:
        call(x.to(device))
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0].replace("cpu", "mybackend")


def test_scalars_reduce_to_themselves(device, no_fallback):
    x = torch.tensor(3.0)
    for call in ("sum", "mean", "max", "amax", "argmax", "prod", "all"):
        same(getattr(x.to(device), call)(), getattr(x, call)())
    same(x.to(device).max(0).values, x.max(0).values)


def test_the_second_device_reduces_on_its_own_stream():
    x = torch.randn(1000, 300)
    with torch.mybackend.device(1):
        stream = torch.mybackend.Stream()
    y = x.to("mybackend:1")
    with torch.mybackend.stream(stream):
        stream.wait_stream(torch.mybackend.default_stream(1))
        total = y.sum()
    assert total.device == torch.device("mybackend:1")
    stream.synchronize()
    same(total, x.sum(), rtol=1e-4, atol=1e-3)
