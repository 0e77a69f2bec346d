"""Devices: how many, which one is current, what they are. Same words as torch.cuda."""

from types import TracebackType
from typing import Any, TypeAlias

import torch

from mybackend import _C

_device_t: TypeAlias = torch.device | str | int | None

__all__ = [
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "driver",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "set_device",
    "synchronize",
]


def device_index(device: _device_t) -> int:
    """The index a device argument stands for; -1 is the current device."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    parsed = torch.device(device)
    if parsed.type != "mybackend":
        raise ValueError(f"Expected a mybackend device, but got: {parsed}")
    return -1 if parsed.index is None else parsed.index


def driver() -> str:
    """Name of the driver in use: "cuda" on a GPU, "host" on the CPU (MYBACKEND_DRIVER)."""
    return _C.driver()


def is_available() -> bool:
    return _C.device_count() > 0


def device_count() -> int:
    return _C.device_count()


def current_device() -> int:
    """Index of the calling thread's current device."""
    return _C.current_device()


def set_device(device: _device_t) -> None:
    """Makes a device current; a negative index changes nothing, as in torch.cuda."""
    index = device_index(device)
    if index >= 0:
        _C.set_device(index)


def synchronize(device: _device_t = None) -> None:
    """Waits for all work on all streams of the device and raises what its kernels reported."""
    _C.synchronize(device_index(device))


def is_initialized() -> bool:
    """Whether a device has been used in this process."""
    return _C.is_initialized() and not _C.is_in_bad_fork()


def init() -> None:
    """Raises unless a device can be used; devices start by themselves on first use."""
    _C.check_device(0)


def get_device_properties(device: _device_t = None) -> _C.DeviceProperties:
    return _C.device_properties(device_index(device))


def get_device_name(device: _device_t = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: _device_t = None) -> tuple[int, int]:
    """(major, minor): compute capability of a GPU; on the host driver the x86-64 level its kernels were built for."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: _device_t, peer_device: _device_t) -> bool:
    indices = [current_device() if (i := device_index(d)) < 0 else i for d in (device, peer_device)]
    return _C.can_access_peer(*indices)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """bfloat16 is stored on every device; without emulation the GPU must have bfloat16 arithmetic."""
    return including_emulation or driver() != "cuda" or get_device_capability()[0] >= 8


class device:
    """Context manager that makes a device current; None or a negative index does nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = device_index(device)
        self.prev_idx = -1

    def __enter__(self) -> "device":
        self.prev_idx = _C.exchange_device(self.idx)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C.exchange_device(self.prev_idx)


class device_of(device):
    """Context manager that makes the device of a tensor or storage current, if it is one of ours."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.device.type == "mybackend" else -1)


class _DeviceGuard(device):
    def __init__(self, index: int) -> None:
        super().__init__(index)


def _exchange_device(device: int) -> int:
    return _C.exchange_device(device)


def _maybe_exchange_device(device: int) -> int:
    return _C.exchange_device(device)


def _is_in_bad_fork() -> bool:
    return _C.is_in_bad_fork()


def _lazy_init() -> None:
    init()
