"""Random numbers: right distributions, reproducible from the seed, independent of strides, threads and stream mode."""

import math

import pytest
import torch

N = 200_000


def generator(device, seed=0):
    return torch.Generator(device).manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_uniform_covers_its_interval_and_never_reaches_the_end(device, dtype):
    x = torch.empty(N, device=device, dtype=dtype).uniform_(-2, 3, generator=generator(device)).double().cpu()
    assert x.min() >= -2 and x.max() < 3
    assert x.mean().item() == pytest.approx(0.5, abs=0.02)
    assert x.var().item() == pytest.approx(25 / 12, rel=0.02)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_normal_has_its_moments(device, dtype):
    x = torch.empty(N, device=device, dtype=dtype).normal_(1, 2, generator=generator(device)).double().cpu()
    standard = (x - 1) / 2
    assert standard.mean().item() == pytest.approx(0, abs=0.01)
    assert standard.var().item() == pytest.approx(1, rel=0.02)
    assert (standard**3).mean().item() == pytest.approx(0, abs=0.05)
    assert (standard**4).mean().item() == pytest.approx(3, rel=0.05)
    assert torch.isfinite(x).all()


def test_neighbouring_normals_are_uncorrelated(device):
    x = torch.randn(N, device=device, generator=generator(device)).cpu()
    for lag in (1, 2, 3, 512, 1024):
        assert abs((x[lag:] * x[:-lag]).mean().item()) < 0.01, lag


# arguments, mean and variance of each distribution
MOMENTS = {
    "exponential_": ((2.0,), 0.5, 0.25),
    "geometric_": ((0.25,), 4.0, 12.0),
    "log_normal_": ((0.0, 0.5), math.exp(0.125), (math.exp(0.25) - 1) * math.exp(0.25)),
    "bernoulli_": ((0.3,), 0.3, 0.21),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_a_distribution_has_its_mean_and_variance(device, name):
    arguments, mean, variance = MOMENTS[name]
    x = getattr(torch.empty(N, device=device), name)(*arguments, generator=generator(device)).double().cpu()
    assert x.mean().item() == pytest.approx(mean, rel=0.02)
    assert x.var().item() == pytest.approx(variance, rel=0.05)


def test_cauchy_has_its_quartiles(device):
    x = torch.empty(N, device=device).cauchy_(1, 2, generator=generator(device)).cpu()
    quartiles = torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]))
    torch.testing.assert_close(quartiles, torch.tensor([-1.0, 1.0, 3.0]), atol=0.05, rtol=0)


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.bool]
)
def test_random_integers_fill_their_range(device, dtype):
    high = 2 if dtype == torch.bool else 7
    x = torch.empty(N, device=device, dtype=dtype).random_(0, high, generator=generator(device)).cpu()
    counts = torch.bincount(x.long(), minlength=high).double() / N
    torch.testing.assert_close(counts, torch.full((high,), 1 / high, dtype=torch.float64), atol=0.01, rtol=0)


def test_random_integers_reach_beyond_32_bits(device):
    x = torch.randint(-(2**60), 2**60, (N,), device=device, generator=generator(device)).cpu()
    assert x.min() < -(2**59) and x.max() > 2**59


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(device):
    draw = lambda seed: torch.rand(100, device=device, generator=generator(device, seed)).cpu()  # noqa: E731
    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_a_restored_state_continues_the_sequence(device):
    source = generator(device, 5)
    torch.rand(10, device=device, generator=source)
    state = source.get_state()
    first = torch.randn(10, device=device, generator=source).cpu()
    source.set_state(state)
    assert torch.equal(torch.randn(10, device=device, generator=source).cpu(), first)


def test_numbers_do_not_depend_on_strides_or_threads(device):
    dense = torch.empty(300, 200, device=device).normal_(generator=generator(device)).cpu()
    strided = torch.empty(300, 400, device=device)[:, ::2].normal_(generator=generator(device)).cpu()
    assert torch.equal(dense, strided)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.equal(torch.empty(300, 200, device=device).normal_(generator=generator(device)).cpu(), dense)
    finally:
        torch.set_num_threads(threads)


def test_bernoulli_follows_a_tensor_of_probabilities(device):
    p = torch.linspace(0, 1, 11).repeat_interleave(20_000)
    x = torch.bernoulli(p.to(device), generator=generator(device)).cpu()
    torch.testing.assert_close(x.view(11, -1).mean(1), torch.linspace(0, 1, 11), atol=0.02, rtol=0)


def test_bernoulli_refuses_what_is_no_probability(device):
    with pytest.raises(RuntimeError, match=r"Expected p_in >= 0 && p_in <= 1 to be true"):
        torch.bernoulli(torch.tensor([0.5, 1.5], device=device)).cpu()
    assert torch.ones(2, device=device).sum().item() == 2


def test_randperm_is_a_permutation(device):
    x = torch.randperm(1000, device=device, generator=generator(device)).cpu()
    assert torch.equal(x.sort().values, torch.arange(1000))
    assert not torch.equal(x, torch.arange(1000))
    assert torch.randperm(0, device=device).shape == (0,)


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_draws_in_proportion_and_never_what_has_no_weight(device, replacement):
    weights = torch.tensor([[0.0, 1.0, 3.0, 0.0], [2.0, 2.0, 0.0, 0.0]], device=device)
    draws = torch.stack([torch.multinomial(weights, 2, replacement) for _ in range(300)]).cpu()
    assert not torch.isin(draws[:, 0], torch.tensor([0, 3])).any()
    assert not torch.isin(draws[:, 1], torch.tensor([2, 3])).any()
    if replacement:
        assert (draws[:, 0] == 2).float().mean().item() == pytest.approx(0.75, abs=0.1)
    else:
        assert (draws[..., 0] != draws[..., 1]).all()


def test_multinomial_refuses_negative_weights(device):
    with pytest.raises(RuntimeError, match="probability tensor contains either `inf`, `nan` or element < 0"):
        torch.multinomial(torch.tensor([1.0, -1.0], device=device), 1).cpu()


def test_dropout_keeps_the_mean_zeroes_its_share_and_scales_the_gradient_by_the_same_mask(device):
    x = torch.ones(N, device=device, requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    y.sum().backward()
    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert torch.equal(x.grad.cpu(), y.detach().cpu())
    assert y.detach().cpu().unique().tolist() == pytest.approx([0.0, 4 / 3])


def test_dropout_of_probability_one_is_zero_and_in_evaluation_nothing_happens(device):
    x = torch.randn(50, device=device)
    assert (torch.nn.functional.dropout(x, 1.0) == 0).all()
    assert torch.equal(torch.nn.functional.dropout(x, 0.5, training=False).cpu(), x.cpu())


def test_a_generator_of_another_device_is_refused(device):
    with pytest.raises(RuntimeError, match="Expected a '.*' device type for generator but found 'cpu'"):
        torch.empty(3, device=device).normal_(generator=torch.Generator())
