"""Gamma, Dirichlet, Poisson and binomial samples: their distribution, their gradients, misuse, reproducibility."""

import pytest
import torch
from torch import distributions as D

pytestmark = pytest.mark.usefixtures("no_fallback")
N = 20000


def largest_distance(a, b):
    """Between the empirical distribution functions of two samples of one size (Kolmogorov and Smirnov)."""
    together = torch.cat([a, b]).unique()
    below = [torch.searchsorted(x.sort().values, together, right=True) for x in (a, b)]
    return (below[0] - below[1]).abs().max().item() / len(a)


CRITICAL = 1.95 * (2 / N) ** 0.5  # exceeded with probability 0.001
DISTRIBUTIONS = {
    "gamma 0.1": lambda at: D.Gamma(torch.tensor(0.1, device=at), 1.0),
    "gamma 1": lambda at: D.Gamma(torch.tensor(1.0, device=at), 1.0),
    "gamma 30": lambda at: D.Gamma(torch.tensor(30.0, device=at), 1.0),
    "beta": lambda at: D.Beta(torch.tensor(0.5, device=at), torch.tensor(3.0, device=at)),
    "poisson 0.3": lambda at: D.Poisson(torch.tensor(0.3, device=at)),
    "poisson 9.9": lambda at: D.Poisson(torch.tensor(9.9, device=at)),
    "poisson 1000": lambda at: D.Poisson(torch.tensor(1000.0, device=at)),
    "binomial 5": lambda at: D.Binomial(5, torch.tensor(0.4, device=at)),
    "binomial 100": lambda at: D.Binomial(100, torch.tensor(0.3, device=at)),
    "binomial 1000": lambda at: D.Binomial(1000, torch.tensor(0.97, device=at)),
    "student": lambda at: D.StudentT(torch.tensor(3.0, device=at)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_samples_have_the_distribution_of_the_cpus(device, name):
    torch.manual_seed(0)
    ours, theirs = (DISTRIBUTIONS[name](where).sample((N,)).cpu() for where in (device, "cpu"))
    assert largest_distance(ours, theirs) < CRITICAL


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_seed_and_a_position_decide_a_sample(device, dtype):
    rates = torch.linspace(0.1, 50, 5000, dtype=dtype, device=device)
    for sample in (torch._standard_gamma, torch.poisson, lambda x: torch.binomial(x.round(), torch.full_like(x, 0.3))):
        first, second, part = ((torch.manual_seed(3), sample(x.clone()))[1] for x in (rates, rates, rates[:100]))
        assert first.dtype == dtype
        assert torch.equal(first, second) and torch.equal(first[:100], part)
        assert not torch.equal(first, sample(rates.clone()))


def test_the_ends_of_the_parameters(device):
    def on_device(*values):
        return torch.tensor(values, device=device)

    assert torch.poisson(on_device(0.0, 0.0)).eq(0).all().item()
    assert torch.binomial(on_device(0.0, 4.0, 4.0), on_device(0.5, 0.0, 1.0)).tolist() == [0, 0, 4]
    assert torch._standard_gamma(on_device(0.0, 1e-6)).gt(0).all().item()
    assert torch.poisson(torch.empty(0, 3, device=device)).shape == (0, 3)
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        torch.poisson(on_device(1.0, -1.0))
        torch.accelerator.synchronize()
    with pytest.raises(NotImplementedError, match="\"poisson\" not implemented for 'Long'"):
        torch.poisson(on_device(1, 2))


def test_dirichlet_samples_sum_to_one(device):
    samples = D.Dirichlet(torch.tensor([0.01, 0.5, 3.0], device=device)).sample((1000,))
    torch.testing.assert_close(samples.sum(-1), torch.ones(1000, device=device))
    assert samples.ge(0).all().item()


def test_the_gradient_of_a_gamma_sample_keeps_its_quantile(device):
    a = torch.tensor([0.05, 0.3, 1.0, 2.5, 20.0, 400.0], dtype=torch.float64).repeat_interleave(5)
    spread = torch.tensor([0.05, 0.4, 1.0, 1.6, 2.5], dtype=torch.float64).repeat(6)
    x = torch.where(a > 1, a + (spread - 1) * a.sqrt().clamp_max(a / 1.2), spread)
    h = 1e-5 * a
    slope = (torch.special.gammainc(a + h, x) - torch.special.gammainc(a - h, x)) / (2 * h)
    density = ((a - 1) * x.log() - x - torch.lgamma(a)).exp()
    ours = torch._standard_gamma_grad(a.to(device), x.to(device)).cpu()
    torch.testing.assert_close(ours, -slope / density, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("concentration", [1500.0, 5000.0, 1e6])
def test_the_gradient_of_a_gamma_sample_at_large_concentrations_is_near_the_cpus(device, concentration):
    a = torch.full((7,), concentration, dtype=torch.float64)
    x = a + torch.linspace(-3, 3, 7, dtype=torch.float64) * a.sqrt()
    ours = torch._standard_gamma_grad(a.to(device), x.to(device)).cpu()
    torch.testing.assert_close(ours, torch._standard_gamma_grad(a, x), rtol=1e-3, atol=1e-3)


def test_the_gradient_of_a_dirichlet_sample_is_near_the_cpus(device):
    a = torch.tensor([0.3, 1.0, 4.0, 30.0], dtype=torch.float64).view(-1, 1, 1)
    b = torch.tensor([0.2, 1.0, 7.0], dtype=torch.float64).view(1, -1, 1)
    quantiles = torch.tensor([-1.5, -0.5, 0.3, 1.2], dtype=torch.float64)
    mean, deviation = a / (a + b), (a * b / (a + b) ** 2 / (a + b + 1)).sqrt()
    x, a, total = torch.broadcast_tensors((mean + quantiles * deviation).clamp(0.02, 0.98), a, a + b)
    arguments = [t.contiguous() for t in (x, a, total)]
    ours = torch._dirichlet_grad(*(t.to(device) for t in arguments)).cpu()
    torch.testing.assert_close(ours, torch._dirichlet_grad(*arguments), rtol=2e-2, atol=2e-3)


def test_a_reparameterised_loss_differentiates(device):
    concentration = torch.tensor([0.7, 2.0, 9.0], device=device, requires_grad=True)
    torch.manual_seed(0)
    D.Dirichlet(concentration).rsample((4000,)).select(-1, 0).mean().backward()
    total = concentration.detach().sum()
    exact = torch.stack([total - concentration.detach()[0], *(-concentration.detach()[0]).expand(2)]) / total**2
    torch.testing.assert_close(concentration.grad, exact, rtol=0.1, atol=2e-3)
