"""A called operator may choose other strides than its meta kernel says: what follows reads it as it was planned."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F


@pytest.mark.parametrize("convolution", [F.conv2d, F.conv_transpose2d])
def test_a_convolution_in_channels_last(agree, convolution):
    x, w = torch.randn(2, 4, 9, 7), torch.randn(4, 4, 3, 3)

    def function(x, w):
        x, w = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w))
        return convolution(x, w).relu() + 1

    agree(function, x, w, grad=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_a_transform_along_an_inner_dimension(agree, name):
    agree(lambda x: torch.view_as_real(getattr(torch.fft, name)(x * 2, dim=1) + 0j) + 1, torch.randn(3, 6, 5))


@pytest.mark.parametrize("name", ["fft2", "ihfft2", "hfftn"])
def test_a_transform_of_several_dimensions(agree, name):
    agree(lambda x: getattr(torch.fft, name)(x * 2, dim=(0, 1)).abs() + 1, torch.randn(3, 6, 5), rtol=1e-4, atol=1e-4)
