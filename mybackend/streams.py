"""Streams and events. They are torch.Stream and torch.Event of this device, so both kinds may be mixed freely."""

from types import TracebackType
from typing import Any, Self

import torch

from mybackend import _C
from mybackend.device import _device_t, device_index

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]


def _device(device: _device_t) -> torch.device:
    index = device_index(device)
    return torch.device("mybackend", _C.current_device() if index < 0 else index)


class Stream(torch.Stream):
    """A queue of work in order, one of a pool of 32 for each device and priority.

    Args:
        device: whose stream; the current device by default.
        priority: 0 is normal, negative numbers are more urgent.
    """

    def __new__(cls, device: Any = None, priority: int = 0, **ids: int) -> Self:
        if ids:
            return super().__new__(cls, **ids)
        return super().__new__(cls, device=_device(device), priority=priority)

    @property
    def priority(self) -> int:
        return _C.stream_priority(self)

    @property
    def mybackend_stream(self) -> int:
        """The driver's handle: a cudaStream_t under the cuda driver, 0 for the default stream."""
        return _C.stream_handle(self)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least urgent, most urgent)."""
        return _C.stream_priority_range()

    def wait_event(self, event: torch.Event) -> None:
        """Work put on this stream from now on starts after the event has happened."""
        event.wait(self)

    def wait_stream(self, stream: torch.Stream) -> None:
        """Work put on this stream from now on starts after what is on the other one now."""
        self.wait_event(stream.record_event())

    def __repr__(self) -> str:
        return f"<mybackend.Stream device={self.device} stream_id={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream made by another library, by its handle. The caller keeps it alive."""

    def __new__(cls, stream_ptr: int, device: Any = None) -> Self:
        where = _device(device)
        return super().__new__(cls, **_ids(stream_ptr, where.index))


class _EventType(type):
    """Event() makes a plain torch.Event: torch's own elapsed_time refuses events of a subclass."""

    def __call__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> torch.Event:
        return torch.Event("mybackend", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    def __instancecheck__(cls, instance: object) -> bool:
        # An event has no device before it is recorded.
        return isinstance(instance, torch.Event) and (instance.device is None or instance.device.type == "mybackend")


class Event(torch.Event, metaclass=_EventType):
    """A marker on a stream that can be waited for, asked for and timed: the torch.Event of this device."""


def _ids(stream_id: int, index: int) -> dict[str, int]:
    kind = int(torch._C._autograd.DeviceType.PrivateUse1.value)
    return {"stream_id": stream_id, "device_index": index, "device_type": kind}


def _as_ours(stream: torch.Stream) -> Stream:
    return Stream(**_ids(stream.stream_id, stream.device_index))


def current_stream(device: _device_t = None) -> Stream:
    """The calling thread's current stream of a device."""
    return _as_ours(torch._C._accelerator_getStream(_device(device).index))


def default_stream(device: _device_t = None) -> Stream:
    return _as_ours(_C.default_stream(device_index(device)))


def set_stream(stream: torch.Stream | None) -> None:
    """Makes a stream, and its device, current. Prefer `with stream:`."""
    if stream is not None:
        torch._C._accelerator_setStream(stream)


class StreamContext:
    """Makes a stream current for its device, and that device current; None does nothing."""

    def __init__(self, stream: torch.Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stream is not None:
            self.stream.__exit__(kind, value, trace)


def stream(stream: torch.Stream | None) -> StreamContext:
    return StreamContext(stream)
