"""What the generated wrappers add to a kernel: variants, output checks, device checks. Wording is upstream's."""

import re

import pytest
import torch


@pytest.fixture
def x(device):
    return torch.arange(-6.0, 6.0, device=device).reshape(3, 4)


def test_a_functional_variant_returns_a_new_tensor(x):
    y = torch.abs(x)
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(y.cpu(), x.cpu().abs())


def test_an_in_place_variant_returns_its_self(x):
    expected = x.cpu().abs()
    assert x.abs_() is x
    assert torch.equal(x.cpu(), expected)


def test_an_in_place_variant_that_needs_another_dtype_is_an_error(device):
    with pytest.raises(RuntimeError, match="Bad in-place call: input tensor dtype"):
        torch.ones(3, device=device).cumsum_(0, dtype=torch.int64)


def test_out_is_written_and_returned(x):
    out = torch.empty_like(x)
    assert torch.abs(x, out=out) is out
    assert torch.equal(out.cpu(), x.cpu().abs())


def test_an_empty_out_is_resized_silently(x, recwarn):
    out = torch.empty(0, device=x.device)
    torch.abs(x, out=out)
    assert out.shape == x.shape
    assert not recwarn.list


def test_an_out_with_elements_is_resized_with_a_warning(x):
    out = torch.empty(5, device=x.device)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.abs(x, out=out)
    assert torch.equal(out.cpu(), x.cpu().abs())


def test_a_non_contiguous_out_keeps_its_strides(x):
    out = torch.empty(4, 3, device=x.device).t()
    torch.abs(x, out=out)
    assert out.stride() == (1, 3)
    assert torch.equal(out.cpu(), x.cpu().abs())


def test_an_out_of_another_dtype_is_an_error(x):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.mm(x, x.t(), out=torch.empty(3, 3, dtype=torch.int64, device=x.device))


def test_an_out_on_another_device_is_an_error(x):
    with pytest.raises(RuntimeError, match="device"):
        torch.abs(x, out=torch.empty(3, 4))


@pytest.mark.parametrize("other", ["cpu", "mybackend:1"])
def test_tensors_on_two_devices_are_an_error_that_names_both(x, other):
    if torch.device(other).index is not None and torch.mybackend.device_count() < 2:
        other = "cpu"
    elsewhere = torch.ones(4, 2).to(other)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as error:
        torch.mm(x, elsewhere)
    assert re.search(re.escape(str(x.device)), str(error.value))
    assert re.search(re.escape(str(elsewhere.device)), str(error.value))


def test_work_on_another_device_leaves_the_current_device_alone(device):
    last = torch.mybackend.device_count() - 1
    before = torch.mybackend.current_device()
    torch.abs(torch.ones(3, device=f"mybackend:{last}"))
    assert torch.mybackend.current_device() == before
