"""What Dynamo and Inductor ask about the device: torch._dynamo's DeviceInterface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._dynamo.device_interface import DeviceInterface

import mybackend

__all__ = ["Interface"]


@dataclass(frozen=True)
class Properties:
    """Sizes Inductor's heuristics use (split reductions above all), under the names of torch.cuda."""

    name: str
    major: int
    minor: int
    multi_processor_count: int
    max_threads_per_multi_processor: int
    max_threads_per_block: int
    warp_size: int
    regs_per_multiprocessor: int


@cache
def _properties(index: int) -> Properties:
    found = mybackend.get_device_properties(index)
    on_gpu = mybackend.driver() == "cuda"
    return Properties(
        name=found.name,
        major=found.major,
        minor=found.minor,
        multi_processor_count=found.multi_processor_count,
        # A core of the host runs one thread; for the heuristics it is a warp's worth of lanes, eight deep.
        max_threads_per_multi_processor=found.max_threads_per_multi_processor if on_gpu else 256,
        max_threads_per_block=found.max_threads_per_block if on_gpu else 1024,
        warp_size=found.warp_size if on_gpu else 32,
        regs_per_multiprocessor=65536,
    )


def _index(device: Any) -> int:
    if device is None:
        return mybackend.current_device()
    if isinstance(device, int):
        return device
    index = torch.device(device).index
    return mybackend.current_device() if index is None else index


class Interface(DeviceInterface):
    Event = torch.Event
    Stream = mybackend.Stream
    device = mybackend.device

    class Worker:
        """In a compile worker the device is only asked about, never used."""

        device: int = 0

        @staticmethod
        def set_device(device: int) -> None:
            Interface.Worker.device = device

        @staticmethod
        def current_device() -> int:
            return Interface.Worker.device

        @staticmethod
        def get_device_properties(device: Any = None) -> Properties:
            return _properties(Interface.Worker.device if device is None else _index(device))

    current_device = staticmethod(mybackend.current_device)
    set_device = staticmethod(mybackend.set_device)
    device_count = staticmethod(mybackend.device_count)
    is_available = staticmethod(mybackend.is_available)
    synchronize = staticmethod(mybackend.synchronize)
    exchange_device = staticmethod(mybackend._exchange_device)
    maybe_exchange_device = staticmethod(mybackend._maybe_exchange_device)
    current_stream = staticmethod(mybackend.current_stream)
    set_stream = staticmethod(mybackend.set_stream)
    memory_allocated = staticmethod(mybackend.memory_allocated)

    @staticmethod
    def stream(stream: torch.Stream) -> Any:
        return mybackend.stream(stream)

    @staticmethod
    def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
        mybackend.set_stream(mybackend.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))

    @staticmethod
    def get_raw_stream(device_idx: int) -> int:
        return mybackend.current_stream(device_idx).mybackend_stream

    @staticmethod
    def get_device_properties(device: Any = None) -> Properties:
        return _properties(_index(device))

    @staticmethod
    def get_compute_capability(device: Any = None) -> int:
        found = _properties(_index(device))
        return found.major * 10 + found.minor

    @staticmethod
    def is_bf16_supported(including_emulation: bool = False) -> bool:
        return mybackend.is_bf16_supported(including_emulation)

    @staticmethod
    def is_dtype_supported(dtype: torch.dtype, including_emulation: bool = False) -> bool:
        return dtype != torch.bfloat16 or mybackend.is_bf16_supported(including_emulation)

    @staticmethod
    def is_triton_capable(device: Any = None) -> bool:
        return False

    @staticmethod
    def raise_if_triton_unavailable(device: Any = None) -> None:
        raise RuntimeError("mybackend has no Triton: torch.compile generates CUDA C++ for it")
