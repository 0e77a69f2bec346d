"""Pooling: values, indices, strides, gradients and errors of torch's CPU."""

import pytest
import torch
from torch.nn import functional as F

CALLS = {
    "max 1d": (lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 17)),
    "max 2d": (lambda x: F.max_pool2d(x, 2), (2, 3, 8, 10)),
    "max 2d overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 5, 9, 35)),
    "max 2d dilated": (lambda x: F.max_pool2d(x, 3, 1, 1, 2), (2, 3, 9, 12)),
    "max 2d rectangular": (lambda x: F.max_pool2d(x, (2, 3), (1, 2), (1, 1)), (2, 3, 9, 12)),
    "max 2d ceil": (lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True), (2, 3, 8, 8)),
    "max 2d unbatched": (lambda x: F.max_pool2d(x, 2), (3, 8, 8)),
    "max 3d": (lambda x: F.max_pool3d(x, 2), (2, 3, 4, 6, 8)),
    "max 3d overlapping": (lambda x: F.max_pool3d(x, 3, 2, 1, ceil_mode=True), (2, 3, 7, 6, 9)),
    "average 1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 17)),
    "average 2d": (lambda x: F.avg_pool2d(x, 2), (2, 3, 8, 10)),
    "average 2d padded": (lambda x: F.avg_pool2d(x, 3, 2, 1), (2, 3, 9, 12)),
    "average 2d without the padding": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), (2, 3, 9, 12)),
    "average 2d ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), (2, 3, 8, 8)),
    "average 2d with a divisor": (lambda x: F.avg_pool2d(x, 3, divisor_override=5), (2, 3, 9, 12)),
    "average 3d": (lambda x: F.avg_pool3d(x, 3, 2, 1), (2, 3, 7, 6, 9)),
    "adaptive average 1d": (lambda x: F.adaptive_avg_pool1d(x, 5), (2, 3, 17)),
    "adaptive average 2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 5)), (2, 3, 8, 11)),
    "adaptive average 2d upwards": (lambda x: F.adaptive_avg_pool2d(x, (9, 9)), (2, 3, 4, 5)),
    "adaptive average 3d": (lambda x: F.adaptive_avg_pool3d(x, (3, 2, 5)), (2, 3, 5, 6, 7)),
    "adaptive max 1d": (lambda x: F.adaptive_max_pool1d(x, 5), (2, 3, 17)),
    "adaptive max 2d": (lambda x: F.adaptive_max_pool2d(x, (3, 5)), (2, 3, 8, 11)),
    "adaptive max 3d": (lambda x: F.adaptive_max_pool3d(x, (3, 2, 5)), (2, 3, 5, 6, 7)),
    "of an empty batch": (lambda x: F.max_pool2d(x, 2), (0, 3, 8, 8)),
    "wider than a vector": (lambda x: F.max_pool2d(x, 2), (1, 37, 4, 6)),
}
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def sample(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: str(t).removeprefix("torch."))
@pytest.mark.parametrize("name", CALLS)
def test_a_pooling_is_the_cpus(device, no_fallback, name, dtype):
    call, shape = CALLS[name]
    x = sample(shape, dtype)
    # In half precision the CPU rounds every partial sum, where it averages at all; ours are rounded once.
    theirs = call(x.float()).to(dtype) if dtype in (torch.float16, torch.bfloat16) else call(x)
    ours = call(x.to(device))
    assert ours.stride() == theirs.stride()
    torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_a_pooling_are_the_cpus(device, no_fallback, name, channels_last):
    call, shape = CALLS[name]
    x = sample(shape)
    if channels_last:
        if len(shape) < 4:
            pytest.skip("no channels_last format")
        x = x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)

    def gradient(place: str) -> torch.Tensor:
        leaf = x.to(place).requires_grad_()
        out = call(leaf)
        torch.manual_seed(1)
        return torch.autograd.grad(out, leaf, torch.randn(out.shape).to(place))[0]

    torch.testing.assert_close(gradient(device).cpu(), gradient("cpu"))


@pytest.mark.parametrize("name", [name for name, (_, shape) in CALLS.items() if len(shape) == 4])
def test_channels_last_input_gives_a_channels_last_output(device, no_fallback, name):
    call, shape = CALLS[name]
    x = sample(shape).to(memory_format=torch.channels_last)
    ours, theirs = call(x.to(device)), call(x)
    assert ours.numel() == 0 or ours.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(ours.cpu(), theirs)


def test_of_equal_maxima_the_first_is_chosen(device, no_fallback):
    values, indices = F.max_pool2d(torch.zeros(1, 1, 4, 4, device=device), 2, return_indices=True)
    assert indices.tolist() == [[[[0, 2], [8, 10]]]] and values.tolist() == [[[[0, 0], [0, 0]]]]


def test_nan_wins_a_maximum(device, no_fallback):
    x = torch.zeros(1, 1, 2, 2)
    x[0, 0, 1, 0] = float("nan")
    values, indices = F.max_pool2d(x.to(device), 2, return_indices=True)
    assert values.isnan().all().item() and indices.item() == 2


def test_integers_have_a_maximum(device, no_fallback):
    x = torch.arange(16).view(1, 1, 4, 4)
    assert torch.equal(F.max_pool2d(x.to(device), 2).cpu(), F.max_pool2d(x, 2))


def test_a_view_is_pooled_as_its_copy(device, no_fallback):
    x = sample((2, 3, 16, 16))[:, :, ::2, ::2]
    torch.testing.assert_close(F.avg_pool2d(x.to(device), 2).cpu(), F.avg_pool2d(x, 2))


def test_a_pooling_is_written_into_out(device, no_fallback):
    x = sample((2, 3, 8, 8))
    out = torch.empty(2, 4, 4, 3, device=device).permute(0, 3, 1, 2)
    torch._C._nn.avg_pool2d(x.to(device), 2, out=out)
    torch.testing.assert_close(out.cpu(), F.avg_pool2d(x, 2))


ERRORS = {
    "padding": lambda d: F.max_pool2d(torch.ones(1, 1, 4, 4, device=d), 2, padding=2),
    "output": lambda d: F.max_pool2d(torch.ones(1, 1, 2, 2, device=d), 5),
    "stride": lambda d: F.max_pool2d(torch.ones(1, 1, 4, 4, device=d), 2, stride=0),
    "dimensions": lambda d: F.max_pool2d(torch.ones(4, device=d), 2),
    "three dimensions": lambda d: F.max_pool3d(torch.ones(1, 1, 2, 2, 2, device=d), 5),
    "divisor": lambda d: F.avg_pool2d(torch.ones(1, 1, 4, 4, device=d), 2, divisor_override=0),
    "adaptive": lambda d: F.adaptive_avg_pool2d(torch.ones(1, 1, 0, 4, device=d), (2, 2)),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_arguments_get_the_cpus_error(device, name):
    with pytest.raises(RuntimeError) as theirs:
        ERRORS[name]("cpu")
    with pytest.raises(RuntimeError) as ours:
        ERRORS[name](device)
    assert str(ours.value) == str(theirs.value)
