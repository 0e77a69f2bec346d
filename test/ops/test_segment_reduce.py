"""Reductions over consecutive pieces of an axis, as on torch's CPU."""

import pytest
import torch

KINDS = ("sum", "mean", "max", "min", "prod")
pytestmark = pytest.mark.usefixtures("no_fallback")


def reduced(where, kind, data, **options):
    leaf = data.to(where).requires_grad_()
    options = {key: value.to(where) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    out = torch.segment_reduce(leaf, kind, **options)
    out.backward(torch.linspace(1, 2, out.numel(), dtype=out.dtype, device=where).view_as(out))
    return out.detach().cpu(), leaf.grad.cpu()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", [(), (3,), (40,)])
@pytest.mark.parametrize("initial", [None, 2.0])
def test_segments_with_ties_zeros_nan_and_nothing(device, kind, inner, initial):
    data = torch.randint(-2, 3, (9, *inner)).double()
    data[4] = float("nan")
    options = dict(lengths=torch.tensor([2, 0, 3, 4]), initial=initial)
    for ours, theirs in zip(reduced(device, kind, data, **options), reduced("cpu", kind, data, **options), strict=True):
        torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_segments_along_an_inner_axis(device, kind):
    data = torch.randn(2, 6, 3, dtype=torch.float64)
    options = dict(lengths=torch.tensor([[1, 5], [3, 3]]), axis=1)
    for ours, theirs in zip(reduced(device, kind, data, **options), reduced("cpu", kind, data, **options), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_mean_what_lengths_do(device, kind):
    data = torch.randn(9, 2, device=device)
    lengths, offsets = torch.tensor([2, 3, 4], device=device), torch.tensor([0, 2, 5, 9], device=device)
    by_lengths, by_offsets = (
        torch.segment_reduce(data, kind, **{k: v}) for k, v in (("lengths", lengths), ("offsets", offsets))
    )
    assert torch.equal(by_lengths, by_offsets)
