"""Random numbers in compiled code: reproducible, of the right distribution, and eager's where that is asked for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

FACTORIES = {
    "rand": (lambda d: torch.rand(100000, device=d), 0.5, 12**-0.5),
    "randn": (lambda d: torch.randn(100000, device=d), 0.0, 1.0),
    "randint": (lambda d: torch.randint(0, 101, (100000,), device=d).float(), 50.0, (101**2 - 1) ** 0.5 / 12**0.5),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_numbers_follow_the_seed_and_have_the_right_moments(device, name):
    factory, mean, deviation = FACTORIES[name]
    compiled = torch.compile(lambda: factory(device), fullgraph=True)
    torch.manual_seed(7)
    first, second = compiled(), compiled()
    torch.manual_seed(7)
    again = compiled()
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert abs(first.mean().item() - mean) < 5 * deviation / 100000**0.5
    assert abs(first.std().item() - deviation) < 0.02 * deviation


@pytest.mark.parametrize("name", FACTORIES)
def test_fallback_random_gives_the_numbers_of_eager_code(device, name):
    factory = FACTORIES[name][0]
    with torch._inductor.config.patch(fallback_random=True):
        compiled = torch.compile(lambda: factory(device), fullgraph=True)
        torch.manual_seed(3)
        actual = compiled()
    torch.manual_seed(3)
    assert torch.equal(actual, factory(device))


def test_dropout_drops_the_same_elements_forward_and_backward(device):
    x = torch.ones(10000, device=device, requires_grad=True)
    y = torch.compile(lambda x: F.dropout(x, 0.25), fullgraph=True)(x)
    y.sum().backward()
    assert torch.equal(y.detach(), x.grad)
    assert 0.7 < (y != 0).float().mean().item() < 0.8


def test_generators_may_be_forked_and_seeded_in_compiled_code(device):
    def function(x):
        with torch.random.fork_rng(device_type="mybackend"):
            torch.manual_seed(7)
            drawn = torch.empty_like(x).uniform_()
        return drawn + x

    x = torch.randn(8, device=device)
    state = torch.mybackend.get_rng_state(device)
    with torch._inductor.config.patch(fallback_random=True):
        compiled = torch.compile(function)(x)
    assert torch.equal(torch.mybackend.get_rng_state(device), state)
    torch.testing.assert_close(compiled, function(x))
