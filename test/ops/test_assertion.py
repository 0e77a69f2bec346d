"""_assert_async raises its message for a zero and nothing else."""

import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32, torch.bfloat16, torch.complex64])
def test_a_non_zero_passes_and_a_zero_raises_the_message(device, no_fallback, dtype):
    torch._assert_async(torch.ones((), device=device, dtype=dtype), "never seen")
    with pytest.raises(RuntimeError, match="x must not be zero"):
        torch._assert_async(torch.zeros(1, device=device, dtype=dtype), "x must not be zero")
        torch.mybackend.synchronize()


def test_the_device_works_on_after_a_failed_assertion(device):
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
        torch._assert_async(torch.zeros((), device=device))
        torch.mybackend.synchronize()
    assert torch.ones(3, device=device).sum().item() == 3


def test_more_than_one_value_is_ambiguous(device):
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        torch._assert_async(torch.ones(2, device=device))
