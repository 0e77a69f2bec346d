"""Images sampled at the places of a grid, as torch's CPU does it: every interpolation and padding, and gradients."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from mybackend.testing import cases, check_backward, check_forward

NAMES = frozenset(["nn.functional.grid_sample", "grid_sampler_2d", "grid_sampler_3d"])
pytestmark = pytest.mark.usefixtures("no_fallback")
PADDINGS = ("zeros", "border", "reflection")
KINDS = [
    pytest.param(dims, mode, padding, align, id=f"{dims}d-{mode}-{padding}-{align}")
    for dims, mode, padding, align in itertools.product(
        (2, 3), ("bilinear", "nearest", "bicubic"), PADDINGS, (False, True)
    )
    if not (dims == 3 and mode == "bicubic")
]


@pytest.mark.parametrize("case", cases((torch.float32, torch.float64), NAMES), ids=str)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize("case", cases((torch.float32,), NAMES), ids=str)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


def sample(where, image, grid, **options):
    image, grid = image.to(where).requires_grad_(), grid.to(where).requires_grad_()
    out = F.grid_sample(image, grid, **options)
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=where).view_as(out))
    return out.detach().cpu(), image.grad.cpu(), grid.grad.cpu()


@pytest.mark.parametrize(("dims", "mode", "padding", "align"), KINDS)
def test_every_kind_agrees_far_outside_the_image_too(device, dims, mode, padding, align):
    image = torch.randn(2, 3, *(5, 4, 6)[-dims:], dtype=torch.float64)
    grid = torch.randn(2, *(7, 9, 13)[-dims:], dims, dtype=torch.float64) * 2
    options = dict(mode=mode, padding_mode=padding, align_corners=align)
    for ours, theirs in zip(sample(device, image, grid, **options), sample("cpu", image, grid, **options), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("padding", PADDINGS)
def test_an_image_of_one_pixel_has_a_value_everywhere(device, padding):
    image, grid = torch.tensor([[[[3.0]]]]), torch.tensor([[[[0.0, 0.0], [0.5, -0.5], [4.0, 4.0]]]])
    for align in (False, True):
        options = dict(padding_mode=padding, align_corners=align)
        ours = F.grid_sample(image.to(device), grid.to(device), **options)
        torch.testing.assert_close(ours.cpu(), F.grid_sample(image, grid, **options))


def test_a_place_that_is_no_number_or_infinite_takes_nothing_of_the_image(device):
    image = torch.full((1, 1, 4, 4), float("inf"), device=device)
    grid = torch.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [9.0, 9.0], [1e30, 0.0]]]], device=device)
    assert F.grid_sample(image, grid, align_corners=False).eq(0).all().item()


def test_strided_and_half_inputs(device):
    image, grid = torch.randn(2, 6, 5, 3).permute(0, 3, 1, 2), torch.rand(2, 2, 8, 4).permute(0, 2, 3, 1) * 2 - 1
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-2), (torch.bfloat16, 1e-1)):
        x, g = image.to(dtype), grid.to(dtype)
        ours = F.grid_sample(x.to(device), g.to(device), align_corners=True)
        exact = F.grid_sample(x.float(), g.float(), align_corners=True)
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.cpu().float(), exact, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("places", [0, 3])
def test_empty_batches_and_grids(device, batch, places):
    image = torch.randn(batch, 3, 4, 4, device=device, requires_grad=True)
    grid = torch.zeros(batch, places, 2, 2, device=device, requires_grad=True)
    out = F.grid_sample(image, grid, align_corners=False)
    assert out.shape == (batch, 3, places, 2)
    out.sum().backward()
    assert image.grad.shape == image.shape and grid.grad.shape == grid.shape


def test_mixed_types_and_modes_are_refused_in_upstreams_words(device):
    image, grid = torch.randn(1, 1, 3, 3, device=device), torch.zeros(1, 1, 1, 2, device=device)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        F.grid_sample(image, grid.double(), align_corners=False)
    with pytest.raises(RuntimeError, match=r"expected grid to have size 2 in last dimension"):
        F.grid_sample(image, torch.zeros(1, 1, 1, 3, device=device), align_corners=False)
    with pytest.raises(RuntimeError, match="bicubic interpolation only supports 4D input"):
        F.grid_sample(image[None], torch.zeros(1, 1, 1, 1, 3, device=device), mode="bicubic", align_corners=False)
