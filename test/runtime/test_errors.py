"""What goes wrong becomes a Python exception and leaves the process usable."""

import pytest
import torch


def test_an_exception_in_backward_reaches_the_caller():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no backward")

    x = torch.ones(2, device="mybackend", requires_grad=True)
    with torch.mybackend.Stream(), pytest.raises(ValueError, match="no backward"):
        Fails.apply(x).sum().backward()
    assert (x.detach() + 1).tolist() == [2, 2]


def test_a_stream_of_another_kind_of_device_is_refused():
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        torch.mybackend.set_stream(torch.Stream("cpu"))
