"""nn.Unfold, nn.Fold, unpooling, fractional pooling and weight normalisation: values and gradients of torch's CPU."""

import pytest
import torch
from torch.nn import functional as F


def sample(*shape: int) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(shape)


def unpool(x: torch.Tensor, dims: int) -> torch.Tensor:
    pool, back = (F.max_pool2d, F.max_unpool2d) if dims == 2 else (F.max_pool3d, F.max_unpool3d)
    values, indices = pool(x, 2, return_indices=True)
    return back(values, indices, 2)


def fractional(x: torch.Tensor, dims: int) -> torch.Tensor:
    pool = F.fractional_max_pool2d if dims == 2 else F.fractional_max_pool3d
    samples = torch.linspace(0.1, 0.9, 6 * dims).view(2, 3, dims).to(x.device)
    return pool(x, 2, output_size=3, _random_samples=samples)


CALLS = {
    "unfold": (lambda x: F.unfold(x, 3, padding=1), (2, 3, 6, 7)),
    "unfold strided": (lambda x: F.unfold(x, (2, 3), stride=(2, 1), dilation=(1, 2)), (2, 3, 7, 8)),
    "unfold unbatched": (lambda x: F.unfold(x, 2), (3, 6, 7)),
    "fold": (lambda x: F.fold(x, (5, 6), 2), (2, 12, 20)),
    "fold strided": (lambda x: F.fold(x, (6, 8), (2, 3), padding=1, stride=2), (2, 18, 16)),
    "max_unpool2d": (lambda x: unpool(x, 2), (2, 3, 6, 8)),
    "max_unpool3d": (lambda x: unpool(x, 3), (2, 3, 4, 6, 8)),
    "fractional_max_pool2d": (lambda x: fractional(x, 2), (2, 3, 7, 8)),
    "fractional_max_pool3d": (lambda x: fractional(x, 3), (2, 3, 5, 7, 8)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2, 3), (2, 3, 7, 8)),
    "weight_norm of rows": (lambda x: torch._weight_norm(x, x.detach()[:, :1].contiguous(), 0), (5, 4)),
    "weight_norm of columns": (lambda x: torch._weight_norm(x, x.detach()[:1].contiguous(), 1), (5, 4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_the_cpus(device, no_fallback, name):
    call, shape = CALLS[name]
    results = []
    for place in (device, "cpu"):
        leaf = sample(*shape).to(place).requires_grad_()
        out = call(leaf)
        torch.manual_seed(1)
        grad = torch.autograd.grad(out, leaf, torch.randn(out.shape).to(place))[0]
        results.append((out.detach().cpu(), grad.cpu()))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "call",
    [
        lambda d: F.unfold(torch.ones(1, 1, 2, 2, device=d), 3),
        lambda d: F.unfold(torch.ones(2, 4, device=d), 2),
        lambda d: F.fold(torch.ones(1, 7, 4, device=d), (3, 3), 2),
    ],
)
def test_wrong_arguments_get_the_cpus_error(device, call):
    with pytest.raises((RuntimeError, IndexError)) as theirs:
        call("cpu")
    with pytest.raises(type(theirs.value)) as ours:
        call(device)
    assert str(ours.value) == str(theirs.value)
