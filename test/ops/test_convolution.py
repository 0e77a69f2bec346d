"""Convolution: values, strides and gradients of torch's CPU, for every rank, transposed, grouped and dilated."""

import pytest
import torch
from torch.nn import functional as F

CALLS = {
    "1d": (F.conv1d, (2, 4, 9), (6, 4, 3), 6, {}),
    "2d": (F.conv2d, (2, 4, 9, 8), (6, 4, 3, 3), 6, {"padding": 1}),
    "2d strided": (F.conv2d, (2, 4, 9, 8), (6, 4, 3, 2), 6, {"stride": (2, 1), "padding": (1, 0)}),
    "2d dilated": (F.conv2d, (2, 4, 9, 8), (6, 4, 3, 3), 6, {"dilation": 2}),
    "2d grouped": (F.conv2d, (2, 4, 9, 8), (6, 2, 3, 3), 6, {"groups": 2}),
    "2d depthwise": (F.conv2d, (2, 4, 9, 8), (4, 1, 3, 3), 4, {"groups": 4, "padding": "same"}),
    "2d pointwise": (F.conv2d, (2, 4, 5, 5), (6, 4, 1, 1), 6, {}),
    "of single elements": (F.conv3d, (1, 1, 4, 4, 4), (1, 1, 1, 1, 1), 1, {}),
    "2d unbatched": (F.conv2d, (4, 9, 8), (6, 4, 3, 3), 6, {}),
    "3d": (F.conv3d, (2, 3, 5, 6, 7), (4, 3, 2, 3, 3), 4, {"padding": 1}),
    "transposed 1d": (F.conv_transpose1d, (2, 4, 9), (4, 6, 3), 6, {"stride": 2}),
    "transposed 2d": (
        F.conv_transpose2d,
        (2, 4, 5, 6),
        (4, 3, 3, 3),
        6,
        {"stride": 2, "output_padding": 1, "groups": 2},
    ),
    "transposed 3d": (F.conv_transpose3d, (1, 2, 3, 4, 5), (2, 3, 2, 2, 2), 3, {"stride": 2}),
    "empty batch": (F.conv2d, (0, 4, 9, 8), (6, 4, 3, 3), 6, {}),
}
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def tensors(name: str, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(0)
    _, input_, weight, bias, _ = CALLS[name]
    return [torch.randn(shape, dtype=dtype) for shape in (input_, weight, (bias,))]


def run(name: str, inputs: list[torch.Tensor]) -> torch.Tensor:
    call, *_, options = CALLS[name]
    return call(*inputs, **options)


@pytest.mark.parametrize("name", CALLS)
def test_a_convolution_is_the_cpus(device, no_fallback, name):
    inputs = tensors(name)
    ours, theirs = run(name, [t.to(device) for t in inputs]), run(name, inputs)
    assert ours.stride() == theirs.stride()
    torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.skipif("torch.mybackend.driver() != 'host'", reason="bit equality holds for the host driver's library")
@pytest.mark.parametrize("bias", [True, False])
def test_a_convolution_is_the_cpus_bit_for_bit_on_the_host(device, bias):
    inputs = tensors("2d")[: 3 if bias else 2]
    assert torch.equal(run("2d", [t.to(device) for t in inputs]).cpu(), run("2d", inputs))


@pytest.mark.parametrize("name", [name for name in CALLS if name != "empty batch"])
def test_gradients_of_a_convolution_are_the_cpus(device, no_fallback, name):
    def gradients(place: str) -> tuple[torch.Tensor, ...]:
        leaves = [t.to(place).requires_grad_() for t in tensors(name)]
        out = run(name, leaves)
        torch.manual_seed(1)
        return torch.autograd.grad(out, leaves, torch.randn(out.shape).to(place))

    for ours, theirs in zip(gradients(device), gradients("cpu"), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_a_convolution_of_another_dtype_is_the_cpus(device, no_fallback, dtype):
    inputs = tensors("2d", dtype)
    torch.testing.assert_close(run("2d", [t.to(device) for t in inputs]).cpu(), run("2d", inputs))


@pytest.mark.parametrize("name", ["2d", "2d strided", "2d pointwise", "2d depthwise"])
def test_channels_last_input_gives_a_channels_last_output_and_gradient(device, no_fallback, name):
    def results(place: str) -> tuple[torch.Tensor, torch.Tensor]:
        input_, weight, bias = tensors(name)
        leaf = input_.to(memory_format=torch.channels_last).to(place).requires_grad_()
        out = run(name, [leaf, weight.to(place), bias.to(place)])
        return out, torch.autograd.grad(out, leaf, torch.ones(out.shape).to(place))[0]

    for ours, theirs in zip(results(device), results("cpu"), strict=True):
        assert ours.stride() == theirs.stride()
        torch.testing.assert_close(ours.cpu(), theirs)


def test_only_the_gradients_that_are_wanted_are_computed(device, no_fallback):
    input_, weight, bias = (t.to(device) for t in tensors("2d"))
    weight.requires_grad_()
    out = run("2d", [input_, weight, bias])
    (grad,) = torch.autograd.grad(out, weight, torch.ones(out.shape).to(device))
    assert grad.shape == weight.shape


ERRORS = {
    "channels": lambda d: F.conv2d(torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 4, 3, 3, device=d)),
    "kernel": lambda d: F.conv2d(torch.ones(1, 3, 2, 2, device=d), torch.ones(2, 3, 3, 3, device=d)),
    "bias": lambda d: F.conv2d(
        torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 3, 3, 3, device=d), torch.ones(3, device=d)
    ),
    "stride": lambda d: F.conv2d(torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 3, 3, 3, device=d), stride=0),
    "dtypes": lambda d: F.conv2d(
        torch.ones(1, 3, 4, 4, device=d), torch.ones(2, 3, 3, 3, device=d, dtype=torch.float64)
    ),
    "dimensions": lambda d: F.conv2d(torch.ones(3, device=d), torch.ones(2, 3, 3, 3, device=d)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments_get_the_cpus_error(device, name):
    with pytest.raises(RuntimeError) as theirs:
        ERRORS[name]("cpu")
    with pytest.raises(RuntimeError) as ours:
        ERRORS[name](device)
    assert str(ours.value) == str(theirs.value)
