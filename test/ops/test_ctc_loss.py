"""Connectionist temporal classification as on torch's CPU: losses, gradients, lengths, repeated labels, misuse."""

import pytest
import torch
from torch.nn import functional as F

from mybackend.testing import cases, check_backward, check_forward

NAMES = frozenset(["nn.functional.ctc_loss"])
pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.mark.parametrize("case", cases((torch.float32, torch.float64), NAMES), ids=str)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize("case", cases((torch.float64,), NAMES), ids=str)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


def loss_and_gradient(where, log_probs, targets, inputs, lengths, **options):
    leaf = log_probs.to(where).requires_grad_()
    loss = F.ctc_loss(leaf, targets.to(where), inputs, lengths, **options)
    loss.backward(torch.linspace(1, 2, loss.numel(), dtype=loss.dtype, device=where).view_as(loss))
    return loss.detach().cpu(), leaf.grad.cpu()


def agree(device, *arguments, **options):
    ours, theirs = (loss_and_gradient(where, *arguments, **options) for where in (device, "cpu"))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, equal_nan=True)


def log_probs(time=20, batch=3, classes=6):
    return torch.randn(time, batch, classes, dtype=torch.float64).log_softmax(-1)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("blank", [0, 3])
@pytest.mark.parametrize("padded", [False, True])
def test_targets_of_several_lengths_with_repeated_labels(device, reduction, blank, padded):
    labels = torch.tensor([c for c in range(6) if c != blank])
    lengths = (5, 1, 8)
    targets = labels[torch.randint(2, (3, 8) if padded else (sum(lengths),))]
    agree(device, log_probs(), targets, (20, 7, 19), lengths, blank=blank, reduction=reduction)


def test_lengths_in_tensors_and_targets_of_int32(device):
    targets = torch.randint(1, 6, (3, 4), dtype=torch.int32)
    agree(device, log_probs(), targets, torch.tensor([20, 20, 20]), torch.tensor([4, 2, 3]))


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_a_target_too_long_for_its_input_has_an_infinite_loss(device, zero_infinity):
    targets = torch.tensor([[1, 1, 2], [1, 2, 3], [4, 4, 4]])
    agree(device, log_probs(4), targets, (3, 4, 4), (3, 3, 3), zero_infinity=zero_infinity, reduction="none")


def test_empty_targets_and_empty_inputs(device):
    agree(device, log_probs(5), torch.tensor([[1, 2], [1, 2], [1, 2]]), (5, 0, 0), (0, 0, 2), reduction="none")
    agree(device, log_probs(5), torch.zeros(3, 0, dtype=torch.int64), (5, 4, 3), (0, 0, 0), reduction="none")


def test_probabilities_that_are_not_contiguous(device):
    agree(
        device,
        log_probs().transpose(0, 2).contiguous().transpose(0, 2),
        torch.randint(1, 6, (3, 4)),
        (20,) * 3,
        (4,) * 3,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(blank=6), "blank must be in label range"),
        (dict(inputs=(21, 20, 20)), "Expected input_lengths to have value at most 20, but got value 21"),
        (dict(inputs=(-1, 20, 20)), "Expected input_lengths to have value at least 0, but got value -1"),
        (dict(inputs=(20, 20)), "input_lengths must be of size batch_size"),
        (dict(lengths=(4, 4)), "target_lengths must be of size batch_size"),
        (dict(lengths=(4, 4, 5)), "Expected tensor to have size at least 5 at dimension 1, but got size 4"),
        (dict(lengths=(-4, 4, 4)), "Expected target_lengths to have value at least 0, but got value -4"),
    ],
)
def test_misuse_is_refused_in_upstreams_words(device, change, message):
    arguments = dict(inputs=(20, 20, 20), lengths=(4, 4, 4), blank=0) | change
    for where in (device, "cpu"):
        with pytest.raises(RuntimeError, match=message):
            F.ctc_loss(
                log_probs().to(where), torch.ones(3, 4, dtype=torch.int64, device=where),
                arguments["inputs"], arguments["lengths"], blank=arguments["blank"],
            )  # fmt: skip


def test_a_label_outside_the_classes_is_an_error_and_the_process_goes_on(device):
    targets = torch.tensor([[1, 9], [1, 2], [1, 2]], device=device)
    with pytest.raises(IndexError, match="Target 9 is out of bounds."):
        F.ctc_loss(log_probs().to(device), targets, (20,) * 3, (2,) * 3)
        torch.accelerator.synchronize()
    assert F.ctc_loss(log_probs().to(device), targets.clamp(0, 5), (20,) * 3, (2,) * 3).isfinite().item()
