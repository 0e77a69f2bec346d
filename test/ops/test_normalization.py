"""Layer, RMS, group and batch norm against torch CPU: forward, gradients, statistics, memory formats, mixed dtypes."""

import math

import pytest
import torch
from torch.nn import functional as F

from mybackend.testing import cases, check_backward, check_forward

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = frozenset(
    "nn.functional." + name
    for name in ["layer_norm", "rms_norm", "group_norm", "batch_norm", "batch_norm.without_cudnn", "instance_norm"]
)
pytestmark = pytest.mark.usefixtures("no_fallback")


# The CPU keeps the statistics of an instance norm over half in half; here they are float.
@pytest.mark.parametrize(
    "case",
    [case for case in cases(FLOATS, NAMES) if "instance" not in case.name or case.dtype.itemsize > 2],
    ids=str,
)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize("case", cases((torch.float32, torch.float64), NAMES), ids=str)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


def gradients(function, *tensors):
    leaves = [t.detach().clone().requires_grad_() if t is not None else None for t in tensors]
    out = function(*leaves)
    out.backward(torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape).to(out.device))
    return [out.detach(), *(leaf.grad for leaf in leaves if leaf is not None)]


def agree(device, function, *tensors, **tolerances):
    ours = gradients(function, *(t.to(device) if t is not None else None for t in tensors))
    for mine, other in zip(ours, gradients(function, *tensors), strict=True):
        torch.testing.assert_close(mine.cpu(), other, equal_nan=True, **tolerances)


@pytest.mark.parametrize("rows, n", [(0, 8), (1, 1), (3, 7), (300, 64), (2, 5000), (1000, 3)])
@pytest.mark.parametrize("weights", ["both", "weight only", "none"])
def test_layer_norm_agrees_for_any_number_of_rows_and_weights(device, rows, n, weights):
    weight = torch.randn(n) if weights != "none" else None
    bias = torch.randn(n) if weights == "both" else None
    agree(device, lambda x, w, b: F.layer_norm(x, (n,), w, b), torch.randn(rows, n), weight, bias, rtol=1e-4, atol=1e-4)


def test_layer_norm_takes_several_dimensions_and_strided_input(device):
    x, w, b = torch.randn(6, 5, 4).transpose(0, 1), torch.randn(6, 4), torch.randn(6, 4)
    agree(device, lambda x, w, b: F.layer_norm(x, (6, 4), w, b), x, w, b)


def test_layer_norm_of_a_large_mean_keeps_the_variance(device):
    x = torch.randn(4, 1000) + 1e4
    exact = F.layer_norm(x.double(), (1000,)).float()
    torch.testing.assert_close(F.layer_norm(x.to(device), (1000,)).cpu(), exact, rtol=0, atol=2e-3)


def test_layer_norm_of_nan_and_inf_is_confined_to_the_row(device):
    x = torch.randn(4, 9)
    x[1, 2], x[2, 3] = math.nan, math.inf
    torch.testing.assert_close(F.layer_norm(x.to(device), (9,)).cpu(), F.layer_norm(x, (9,)), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_layer_norm_of_half_input_takes_float_weights(device, dtype):
    x, w, b = torch.randn(20, 64).to(dtype), torch.randn(64), torch.randn(64)
    ours = gradients(lambda x, w, b: F.layer_norm(x, (64,), w, b), x.to(device), w.to(device), b.to(device))
    theirs = gradients(lambda x, w, b: F.layer_norm(x.float(), (64,), w, b), x, w, b)
    assert [t.dtype for t in ours] == [dtype, dtype, torch.float32, torch.float32]
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.float().cpu(), other.float(), rtol=2e-2, atol=2e-2)


def test_layer_norm_refuses_a_wrong_shape_in_upstreams_words(device):
    message = r"Given normalized_shape=\[3\], expected input with shape \[\*, 3\], but got input of size\[2, 4\]"
    with pytest.raises(RuntimeError, match=message):
        F.layer_norm(torch.randn(2, 4, device=device), (3,))


def test_rms_norm_is_one_operator_and_agrees(device):
    x, w = torch.randn(33, 48), torch.randn(48)
    agree(device, lambda x, w: F.rms_norm(x, (48,), w), x, w)
    agree(device, lambda x, w: F.rms_norm(x, (48,), w, 0.1), x, w)
    leaf = x.to(device).requires_grad_()
    assert "FusedRmsNorm" in type(F.rms_norm(leaf, (48,)).grad_fn).__name__


@pytest.mark.parametrize("shape, groups", [((2, 6, 5, 3), 3), ((3, 4), 2), ((2, 8, 100), 1), ((2, 4, 1, 1), 2)])
def test_group_norm_agrees(device, shape, groups):
    w, b = torch.randn(shape[1]), torch.randn(shape[1])
    agree(device, lambda x, w, b: F.group_norm(x, groups, w, b), torch.randn(shape), w, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 6, 5), (200, 130), (2, 3, 2, 3, 2)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_agrees_and_moves_the_running_statistics(device, shape, training):
    c = shape[1]
    x, w, b = torch.randn(shape), torch.randn(c), torch.randn(c)
    mean, var = torch.randn(c), torch.rand(c) + 0.5
    theirs_mean, theirs_var = mean.clone(), var.clone()
    ours_mean, ours_var = mean.to(device), var.to(device)
    theirs = gradients(lambda x, w, b: F.batch_norm(x, theirs_mean, theirs_var, w, b, training), x, w, b)
    ours = gradients(
        lambda x, w, b: F.batch_norm(x, ours_mean, ours_var, w, b, training), x.to(device), w.to(device), b.to(device)
    )
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.cpu(), other, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours_mean.cpu(), theirs_mean)
    torch.testing.assert_close(ours_var.cpu(), theirs_var)


def test_batch_norm_keeps_channels_last(device):
    x = torch.randn(4, 8, 6, 5).to(memory_format=torch.channels_last)
    ours = F.batch_norm(x.to(device), None, None, training=True)
    assert ours.is_contiguous(memory_format=torch.channels_last)
    agree(device, lambda x: F.batch_norm(x, None, None, training=True), x, rtol=1e-4, atol=1e-5)


def test_batch_norm_of_half_input_keeps_float_statistics(device):
    x, mean, var = torch.randn(16, 4, 7, dtype=torch.float16), torch.zeros(4), torch.ones(4)
    w, b = torch.randn(4), torch.randn(4)
    ours = F.batch_norm(x.to(device), mean.to(device), var.to(device), w.to(device), b.to(device), True)
    assert ours.dtype == torch.float16
    torch.testing.assert_close(ours.float().cpu(), F.batch_norm(x.float(), mean, var, w, b, True), rtol=1e-2, atol=1e-2)


def test_a_batch_norm_module_without_momentum_averages_all_batches(device):
    ours, theirs = torch.nn.BatchNorm2d(3, momentum=None).to(device), torch.nn.BatchNorm2d(3, momentum=None)
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5)
        torch.testing.assert_close(ours(x.to(device)).cpu(), theirs(x), rtol=1e-4, atol=1e-5)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name].cpu(), value, rtol=1e-4, atol=1e-5)


def test_batch_norm_refuses_statistics_of_another_length_in_upstreams_words(device):
    x, stats = torch.randn(2, 3, 4, device=device), torch.zeros(5, device=device)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 5"):
        F.batch_norm(x, stats, stats, training=True)


def test_the_pieces_of_sync_batch_norm_put_together_are_batch_norm(device):
    x, w = torch.randn(8, 5, 6), torch.randn(5)
    halves = [half.contiguous() for half in x.to(device).split(4)]
    statistics = [torch.batch_norm_stats(half, 1e-5) for half in halves]
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        halves[0], torch.stack([s[0] for s in statistics]), torch.stack([s[1] for s in statistics]), None, None, 0.1,
        1e-5, torch.tensor([24.0, 24.0], device=device),
    )  # fmt: skip
    ours = torch.cat([torch.batch_norm_elemt(half, w.to(device), None, mean, invstd, 1e-5) for half in halves])
    torch.testing.assert_close(ours.cpu(), F.batch_norm(x, None, None, w, training=True), rtol=1e-4, atol=1e-5)


NORMS = {
    "layer_norm": lambda x, w: F.layer_norm(x, (96,), w),
    "rms_norm": lambda x, w: F.rms_norm(x, (96,), w),
    "batch_norm": lambda x, w: F.batch_norm(x, None, None, w, training=True),
}


@pytest.mark.parametrize("function", NORMS.values(), ids=NORMS)
def test_weight_gradients_do_not_depend_on_the_number_of_threads(device, function):
    x, w = torch.randn(3000, 96, device=device), torch.randn(96, device=device)
    several = gradients(function, x, w)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = gradients(function, x, w)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(several, one, strict=True))
