"""Losses against torch CPU: reductions, weights, ignored targets, images, and targets out of range."""

import pytest
import torch
from torch.nn import functional as F

from mybackend.testing import cases, check_backward, check_forward

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = frozenset(
    "nn.functional." + name
    for name in [
        "nll_loss",
        "cross_entropy",
        "kl_div",
        "binary_cross_entropy_with_logits",
        "gaussian_nll_loss",
        "poisson_nll_loss",
        "hinge_embedding_loss",
        "margin_ranking_loss",
        "cosine_embedding_loss",
        "soft_margin_loss",
        "multilabel_soft_margin_loss",
        "triplet_margin_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
    ]
)
pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.mark.parametrize("case", cases(FLOATS, NAMES), ids=str)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize("case", cases((torch.float32, torch.float64), NAMES), ids=str)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


def run(where, scores, target, weight, **options):
    leaf = scores.to(where).requires_grad_()
    loss = F.nll_loss(leaf, target.to(where), None if weight is None else weight.to(where), **options)
    loss.backward(torch.ones_like(loss))
    return loss.detach().cpu(), leaf.grad.cpu()


@pytest.mark.parametrize("shape", [(3, 5), (5,), (10000, 7), (2, 3, 4, 5), (2, 3, 200, 1), (0, 4)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss_agrees(device, shape, reduction, weighted):
    classes = shape[0] if len(shape) == 1 else shape[1]
    scores = torch.randn(shape).log_softmax(-1 if len(shape) == 1 else 1)
    target = torch.randint(classes, () if len(shape) == 1 else (shape[0], *shape[2:]))
    if target.numel() > 1:
        target.view(-1)[0] = -100
    weight = torch.rand(classes) if weighted else None
    ours, theirs = (run(where, scores, target, weight, reduction=reduction) for where in (device, "cpu"))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, equal_nan=True, rtol=1e-4, atol=1e-5)


def test_a_mean_over_ignored_targets_only_is_nan(device):
    loss = F.nll_loss(torch.randn(2, 3, device=device), torch.tensor([-100, -100], device=device))
    assert loss.isnan().item()


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize("bad", [7, -1])
def test_a_target_outside_the_classes_raises_in_upstreams_words(device, reduction, bad):
    scores, target = torch.randn(4, 3, device=device), torch.tensor([0, bad, 1, 2], device=device)
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds."):
        F.nll_loss(scores, target, reduction=reduction)
        torch.accelerator.synchronize()
    assert F.nll_loss(scores, target.clamp(0, 2)).isfinite().item()


def test_targets_of_another_type_are_refused_in_upstreams_words(device):
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte, but got Int"):
        F.nll_loss(torch.randn(2, 3, device=device), torch.zeros(2, dtype=torch.int32, device=device))


def test_the_sum_does_not_depend_on_the_number_of_threads(device):
    scores, target = torch.randn(50000, 4, device=device), torch.randint(4, (50000,), device=device)
    several = F.nll_loss(scores, target)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = F.nll_loss(scores, target)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(several.cpu(), one.cpu())


def hinge(where, loss, scores, target, **options):
    leaf = scores.detach().to(where).requires_grad_()
    options = {key: value.to(where) if isinstance(value, torch.Tensor) else value for key, value in options.items()}
    result = loss(leaf, target.to(where), **options)
    result.backward(torch.linspace(1, 2, result.numel(), dtype=result.dtype, device=where).view_as(result))
    return result.detach().cpu(), leaf.grad.cpu()


@pytest.mark.parametrize("shape", [(3, 5), (5,), (4, 300)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("p", [1, 2])
def test_multi_margin_loss_agrees(device, shape, reduction, p):
    scores, target = torch.randn(shape, dtype=torch.float64), torch.randint(5, shape[:-1])
    for weight in (None, torch.rand(shape[-1], dtype=torch.float64)):
        options = dict(p=p, margin=0.7, weight=weight, reduction=reduction)
        ours, theirs = (hinge(where, F.multi_margin_loss, scores, target, **options) for where in (device, "cpu"))
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss_stops_at_a_negative_target_and_counts_a_repeated_one_twice(device, reduction):
    target = torch.tensor([[0, 2, 2, -1, 1], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0]])
    scores = torch.randn(3, 5, dtype=torch.float64)
    for rows in (slice(None), 0):
        arguments = F.multilabel_margin_loss, scores[rows], target[rows]
        ours, theirs = (hinge(where, *arguments, reduction=reduction) for where in (device, "cpu"))
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine, other)


def test_a_margin_loss_of_a_target_outside_the_classes_raises(device):
    scores = torch.randn(2, 3, device=device)
    with pytest.raises(IndexError, match="Target 7 is out of bounds."):
        F.multi_margin_loss(scores, torch.tensor([0, 7], device=device))
        torch.accelerator.synchronize()
    with pytest.raises(IndexError, match="Target 3 is out of bounds."):
        F.multilabel_margin_loss(scores, torch.tensor([[0, 3, -1], [1, -1, 0]], device=device))
        torch.accelerator.synchronize()
