"""A called operator may choose other strides than its meta kernel says: what follows reads it as it was planned."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code
from torch._subclasses import FakeTensorMode


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


@pytest.mark.parametrize("of_input", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("of_weight", [torch.contiguous_format, torch.channels_last])
def test_a_traced_convolution_has_the_strides_of_the_eager_one(device, of_input, of_weight):
    import torch._dynamo.device_interface  # which is when the fakes of the device are registered

    x = torch.randn(2, 4, 9, 7, device=device).to(memory_format=of_input)
    w = torch.randn(6, 4, 3, 3, device=device).to(memory_format=of_weight)
    grad = torch.randn(2, 6, 7, 5, device=device)
    numbers = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    mask = [True, True, False]
    y = torch.ops.aten.convolution.default(x, w, None, *numbers)
    eager = [y, *torch.ops.aten.convolution_backward.default(grad, x, w, None, *numbers, mask)[:2]]
    with FakeTensorMode() as mode:
        x, w, grad = (mode.from_tensor(t) for t in (x, w, grad))
        y = torch.ops.aten.convolution.default(x, w, None, *numbers)
        traced = [y, *torch.ops.aten.convolution_backward.default(grad, x, w, None, *numbers, mask)[:2]]
    assert [t.device for t in traced] == [torch.device(device)] * 3
    assert [t.stride() for t in traced] == [t.stride() for t in eager]


@pytest.mark.skipif(torch.mybackend.driver() != "host", reason="the order of the host's library")
def test_convolutions_follow_each_other_in_channels_last(device):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3)).to(device)
    x = torch.randn(2, 3, 9, 9, device=device)
    result, (code, *_) = run_and_get_code(torch.compile(model, fullgraph=True), x)
    torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
    # Kernels put the input, both weights and the result in order, and one adds the bias and is the ReLU.
    assert "(392, 1, 56, 8)" in code and code.count("MB_KERNEL ") == 5


def test_statistics_of_few_channels_are_one_kernel_of_each_pass(device):
    def function(x, w, b):
        return F.relu(F.batch_norm(x, None, None, w, b, training=True))

    x = torch.randn(16, 8, 9, 9).to(memory_format=torch.channels_last)
    w, b = torch.randn(8), torch.randn(8)
    compiled = torch.compile(function, fullgraph=True)
    result, (code, *_) = run_and_get_code(compiled, *(t.to(device) for t in (x, w, b)))
    torch.testing.assert_close(result.cpu(), function(x, w, b), rtol=1e-4, atol=1e-5)
    assert code.count("MB_KERNEL ") == 1
