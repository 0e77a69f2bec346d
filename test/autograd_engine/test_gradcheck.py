"""Numerical derivatives agree with the engine's, of first and second order."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("engine")


def mlp(x, w, b):
    return torch.tanh(x @ w + b).square().sum(-1)


def attention(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v


def branches(x, y, z):
    left, right = torch.chunk(torch.stack([x, y, z]), 2)
    return torch.cat([left.sin().sum(0), right[0] * x, (x * y).cumsum(0)])


def in_place(x, y, z):
    w = x.clone()
    w[0].mul_(y[0])
    w.view(-1).add_(z.reshape(-1))
    return w.exp()


def complex_valued(x, y, z):
    return torch.view_as_real(torch.complex(x, y) * torch.polar(z.abs() + 1, x))


@pytest.mark.parametrize("function", [mlp, attention, branches, in_place, complex_valued])
@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_numerical_derivatives_agree(function, check):
    torch.manual_seed(0)
    inputs = [torch.randn(3, 3, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    options = {"check_batched_grad": True}
    if check is gradcheck:
        options["check_undefined_grad"] = True
    assert check(function, inputs, **options)
