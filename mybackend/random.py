"""Random numbers: the default Philox generator of each device."""

from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import torch
from torch import Tensor

from mybackend import _C
from mybackend.device import _device_t, device_index

__all__ = [
    "default_generators",
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


class _DefaultGenerators(Sequence[torch.Generator]):
    """default_generators[i] is the one of device i; a generator is made when first asked for."""

    def __len__(self) -> int:
        return _C.device_count()

    @overload
    def __getitem__(self, index: int) -> torch.Generator: ...
    @overload
    def __getitem__(self, index: slice) -> "Sequence[torch.Generator]": ...
    def __getitem__(self, index: int | slice) -> "torch.Generator | Sequence[torch.Generator]":
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError("device index out of range")
        return _C.default_generator(index % len(self))

    def __iter__(self) -> Iterator[torch.Generator]:
        return (_C.default_generator(i) for i in range(len(self)))


default_generators = _DefaultGenerators()


def _generator(device: _device_t) -> torch.Generator:
    return _C.default_generator(device_index(device))


def get_rng_state(device: _device_t = "mybackend") -> Tensor:
    """The state of a device's generator: seed and offset, 16 bytes on the CPU."""
    return _generator(device).get_state()


def get_rng_state_all() -> list[Tensor]:
    return [generator.get_state() for generator in default_generators]


def set_rng_state(new_state: Tensor, device: _device_t = "mybackend") -> None:
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device; does nothing where there is no device."""
    if _C.device_count() > 0:
        _generator(None).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds every device. `torch.manual_seed` calls it."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the current device with a random number, and returns it."""
    return _generator(None).seed()


def seed_all() -> None:
    """Seeds every device with one random number."""
    if _C.device_count() > 0:
        manual_seed_all(default_generators[0].seed())


def initial_seed() -> int:
    return _generator(None).initial_seed()
