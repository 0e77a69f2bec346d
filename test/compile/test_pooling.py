"""The gradient of max pooling is gathered from windows: fused with what surrounds it, without atomics, in CPU order."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code

# kernel, stride, padding, ceil_mode
WINDOWS = {
    "apart": (2, 2, 0, False),
    "overlapping": (3, 2, 1, False),
    "dense": (2, 1, 0, False),
    "with gaps": (2, 3, 0, False),
    "oblong": ((3, 2), (1, 2), (1, 0), False),
    "beyond the end": (3, 2, 0, True),
}


def inputs(channels_last: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small integers, so that windows have ties."""
    x = torch.randint(-3, 4, (2, 5, 9, 11)).to(dtype)
    x[0, :, 2:5, 3:6] = float("-inf")
    x[1, 0, 4, 4] = float("nan")
    return x.to(memory_format=torch.channels_last) if channels_last else x


def gradients(function, x: torch.Tensor, upstream: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    function(x).backward(upstream)
    return x.grad


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("channels_last", [False, True], ids=["contiguous", "channels last"])
@pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
def test_gradients_are_the_cpus(device, windows, channels_last, dynamic):
    kernel, stride, padding, ceil_mode = windows

    def pool(x):
        return F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil_mode)

    x = inputs(channels_last)
    upstream = torch.randn_like(pool(x))
    expected = gradients(pool, x, upstream)
    actual = gradients(torch.compile(pool, fullgraph=True, dynamic=dynamic), x.to(device), upstream.to(device))
    assert torch.equal(actual.cpu(), expected)
    assert actual.stride() == expected.stride()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_gradients_of_other_types(agree, dtype):
    agree(lambda x: F.max_pool2d(x, 3, 2, 1), inputs(dtype=dtype).nan_to_num(), grad=True)


def test_a_picture_without_a_batch(agree):
    agree(lambda x: F.max_pool2d(x, 2), inputs()[0], grad=True)


@pytest.mark.parametrize("windows", [{"kernel_size": 3, "dilation": 2}, {"kernel_size": 9, "stride": 1}], ids=str)
def test_what_is_left_to_the_operator(agree, windows):
    agree(lambda x: F.max_pool2d(x, **windows), inputs().nan_to_num(), grad=True)


def test_nothing_is_added_atomically(device):
    x = inputs(channels_last=True).to(device).requires_grad_()
    compiled = torch.compile(lambda x: F.max_pool2d(x.relu(), 2, 1).square().sum())
    _, sources = run_and_get_code(lambda: compiled(x).backward())
    assert "max_pool2d_with_indices_backward" in "".join(sources)
    assert "MB_ADD(" not in "".join(sources)
