"""Embeddings and embedding bags against torch CPU: gradients in a fixed order, padding, frequencies, max_norm."""

import pytest
import torch
from torch.nn import functional as F

from mybackend.testing import cases, check_backward, check_forward

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = frozenset({"nn.functional.embedding", "nn.functional.embedding_bag"})
pytestmark = pytest.mark.usefixtures("no_fallback")


@pytest.mark.parametrize("case", cases(FLOATS, NAMES), ids=str)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize("case", cases((torch.float32, torch.float64), NAMES), ids=str)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


def weight_gradient(device, indices, rows, width, **options):
    weight = torch.randn(rows, width, generator=torch.Generator().manual_seed(1)).to(device).requires_grad_()
    out = F.embedding(indices.to(device), weight, **options)
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).to(device))
    return weight.grad.cpu()


@pytest.mark.parametrize("count, rows, width", [(0, 5, 4), (1, 1, 1), (5000, 7, 200), (3, 1000, 33), (4, 3, 0)])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 0}, {"scale_grad_by_freq": True}], ids=str)
def test_weight_gradient_adds_up_repeated_indices(device, count, rows, width, options):
    indices = torch.randint(rows, (count,), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        weight_gradient(device, indices, rows, width, **options),
        weight_gradient("cpu", indices, rows, width, **options), rtol=1e-4, atol=1e-4,
    )  # fmt: skip


def test_weight_gradient_does_not_depend_on_the_number_of_threads(device):
    indices = torch.randint(50, (3000,), generator=torch.Generator().manual_seed(0))
    several = weight_gradient(device, indices, 50, 300)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = weight_gradient(device, indices, 50, 300)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(several, one)


def test_max_norm_scales_the_rows_that_are_used(device):
    weight, indices = torch.randn(6, 8) * 3, torch.tensor([1, 4, 1])
    for p in (1.0, 2.0, 3.0, float("inf")):
        ours, theirs = weight.to(device), weight.clone()
        F.embedding(indices.to(device), ours, max_norm=1.0, norm_type=p)
        F.embedding(indices, theirs, max_norm=1.0, norm_type=p)
        torch.testing.assert_close(ours.cpu(), theirs)


def test_an_index_outside_the_weights_raises_and_leaves_the_device_working(device):
    weight = torch.randn(3, 2, device=device)
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([0, 3], device=device), weight)
        torch.accelerator.synchronize()
    assert weight.cpu().shape == (3, 2)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"include_last_offset": True}], ids=str)
def test_bags_agree_with_empty_ones_among_them(device, mode, options):
    indices, offsets = torch.tensor([2, 0, 2, 5, 1, 2]), torch.tensor([0, 2, 2, 5, 6])

    def run(where):
        weight = torch.arange(60.0).view(6, 10).sin().to(where).requires_grad_()
        out = F.embedding_bag(indices.to(where), weight, offsets.to(where), mode=mode, **options)
        out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).to(where))
        return out.detach().cpu(), weight.grad.cpu()

    for mine, other in zip(run(device), run("cpu"), strict=True):
        torch.testing.assert_close(mine, other)


def test_bags_weigh_samples_and_differentiate_the_weights(device):
    indices, offsets = torch.tensor([2, 0, 1, 3]), torch.tensor([0, 3])

    def run(where):
        weight = torch.arange(20.0).view(4, 5).cos().to(where).requires_grad_()
        samples = torch.tensor([0.5, -1.0, 2.0, 3.0]).to(where).requires_grad_()
        out = F.embedding_bag(indices.to(where), weight, offsets.to(where), mode="sum", per_sample_weights=samples)
        out.sum().backward()
        return out.detach().cpu(), weight.grad.cpu(), samples.grad.cpu()

    for mine, other in zip(run(device), run("cpu"), strict=True):
        torch.testing.assert_close(mine, other)
