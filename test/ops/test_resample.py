"""Interpolation and pads that repeat what is inside: what torch's CPU gives."""

import pytest
import torch

from mybackend.testing import cases, check_backward, check_forward

NAMES = frozenset(
    [
        f"nn.functional.interpolate.{m}"
        for m in ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear")
    ]
    + [f"nn.functional.pad.{m}" for m in ("reflect", "replicate", "replicate_negative")]
    + ["nn.functional.upsample_nearest", "nn.functional.upsample_bilinear", "_upsample_bilinear2d_aa"]
)


# The CPU rounds what is between the three axes to the stored type; here it is kept in float.
ROUNDED_OFTEN = frozenset(["nn.functional.interpolate.trilinear"])
HALVES = (torch.float16, torch.bfloat16)


@pytest.mark.parametrize("case", [*cases((torch.float32,), NAMES), *cases(HALVES, NAMES - ROUNDED_OFTEN)], ids=str)
def test_an_operator_gives_what_the_cpu_gives(device, case):
    check_forward(case, device, limit=6)


@pytest.mark.parametrize("case", list(cases((torch.float64,), NAMES)), ids=str)
def test_an_operator_differentiates_as_on_the_cpu(device, case):
    check_backward(case, device, limit=4)


def interpolate(x, **options):
    return torch.nn.functional.interpolate(x, **options)


CALLS = {
    "larger": dict(size=(13, 9), mode="bilinear"),
    "smaller": dict(size=(2, 3), mode="bicubic"),
    "aligned corners": dict(scale_factor=2, mode="bicubic", align_corners=True),
    "antialias": dict(size=(3, 2), mode="bilinear", antialias=True),
    "antialiased cubic": dict(size=(4, 3), mode="bicubic", antialias=True),
    "nearest by a half": dict(scale_factor=1.5, mode="nearest"),
    "one pixel": dict(size=(1, 1), mode="bilinear", align_corners=True),
    "recomputed scale": dict(scale_factor=(1.7, 0.6), mode="bilinear", recompute_scale_factor=True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_an_interpolation_and_its_gradient_are_those_of_the_cpu(device, name, channels_last):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, 6, dtype=torch.float64)
    x = x.to(memory_format=torch.channels_last) if channels_last else x
    ours, theirs = x.to(device).requires_grad_(), x.clone().requires_grad_()
    y, z = interpolate(ours, **CALLS[name]), interpolate(theirs, **CALLS[name])
    torch.testing.assert_close(y.detach().cpu(), z.detach())
    weight = torch.randn_like(z)
    y.backward(weight.to(device))
    z.backward(weight)
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


def test_bytes_pass_through_nearest_unchanged(device):
    x = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(interpolate(x.to(device), scale_factor=3).cpu(), interpolate(x, scale_factor=3))


@pytest.mark.parametrize("mode", ["reflect", "replicate"])
@pytest.mark.parametrize("pad", [(2, 1, 3, 0), (0, 0, 1, 2), (-1, 2, 1, -1)])
def test_a_pad_and_its_gradient_are_those_of_the_cpu(device, mode, pad):
    x = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    ours, theirs = x.to(device).requires_grad_(), x.clone().requires_grad_()
    y, z = torch.nn.functional.pad(ours, pad, mode), torch.nn.functional.pad(theirs, pad, mode)
    torch.testing.assert_close(y.detach().cpu(), z.detach())
    weight = torch.randn_like(z)
    y.backward(weight.to(device))
    z.backward(weight)
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


def test_a_reflection_beyond_the_size_is_rejected(device):
    with pytest.raises(RuntimeError, match="Padding size should be less than the corresponding input dimension"):
        torch.nn.functional.pad(torch.ones(1, 3, 4, 4, device=device), (4, 0, 0, 0), "reflect")
