"""Generators: seeds, states, and who draws from which."""

import pytest
import torch


def draw(generator: torch.Generator | None = None, device: str = "mybackend") -> list[float]:
    return torch.rand(8, device=device, generator=generator).tolist()


def test_torch_manual_seed_seeds_every_device():
    torch.manual_seed(3)
    assert [g.initial_seed() for g in torch.mybackend.default_generators] == [3] * torch.mybackend.device_count()


def test_manual_seed_seeds_the_current_device_alone():
    torch.manual_seed(1)
    torch.mybackend.manual_seed(2)
    assert torch.mybackend.initial_seed() == 2
    assert [g.initial_seed() for g in torch.mybackend.default_generators[1:]] == [1] * (
        torch.mybackend.device_count() - 1
    )


def test_equal_seeds_give_equal_numbers_on_all_devices():
    first = []
    for index in range(torch.mybackend.device_count()):
        torch.manual_seed(5)
        first.append(draw(device=f"mybackend:{index}"))
    assert all(numbers == first[0] for numbers in first)


def test_a_state_is_16_bytes_of_seed_and_offset():
    torch.mybackend.manual_seed(0x0102)
    state = torch.mybackend.get_rng_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8
    assert state.tolist() == [2, 1] + [0] * 14


def test_restoring_a_state_repeats_the_numbers():
    draw()
    state = torch.mybackend.get_rng_state()
    numbers = draw()
    assert draw() != numbers
    torch.mybackend.set_rng_state(state)
    assert draw() == numbers


def test_the_offset_moves_in_multiples_of_four():
    generator = torch.Generator("mybackend").manual_seed(1)
    draw(generator)
    assert generator.get_offset() > 0 and generator.get_offset() % 4 == 0
    with pytest.raises(RuntimeError, match="multiple of 4"):
        generator.set_offset(3)


def test_a_state_of_the_wrong_size_is_an_error():
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.mybackend.set_rng_state(torch.zeros(3, dtype=torch.uint8))


def test_a_generator_of_its_own_leaves_the_default_one_alone():
    before = torch.mybackend.get_rng_state()
    generator = torch.Generator("mybackend").manual_seed(7)
    draw(generator)
    assert torch.equal(torch.mybackend.get_rng_state(), before)


def test_a_cloned_generator_goes_its_own_way():
    generator = torch.Generator("mybackend").manual_seed(7)
    clone = generator.clone_state()
    assert draw(generator) == draw(clone)
    draw(generator)
    assert draw(generator) != draw(clone)


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="Expected a .*generator"):
        draw(torch.Generator("cpu"))


def test_fork_rng_restores_the_state():
    state = torch.mybackend.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="mybackend"):
        draw()
    assert torch.equal(torch.mybackend.get_rng_state(), state)


def test_seed_is_random_and_reported():
    assert torch.mybackend.seed() == torch.mybackend.initial_seed()
    torch.mybackend.seed_all()
    assert len({g.initial_seed() for g in torch.mybackend.default_generators}) == 1


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_repeats_the_dropout_of_the_forward(use_reentrant):
    from torch.utils.checkpoint import checkpoint

    seen = []

    def dropped(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.dropout(x, 0.5)
        seen.append(y.detach().cpu())
        return y * y

    x = torch.ones(64, device="mybackend", requires_grad=True)
    checkpoint(dropped, x, use_reentrant=use_reentrant).sum().backward()
    assert torch.equal(seen[0], seen[1])
    torch.testing.assert_close(x.grad.cpu(), 2 * seen[0] * 2 * (seen[0] > 0))
