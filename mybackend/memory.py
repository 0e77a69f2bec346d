"""Memory of the devices: what is in use, what is cached, and its limits. Same words and keys as torch.cuda.memory."""

import collections
from typing import Any

import torch

from mybackend import _C
from mybackend.device import _device_t, device_index

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]


def _index(device: _device_t) -> int:
    index = device_index(device)
    return _C.current_device() if index < 0 else index


def _flatten(nested: dict[str, Any]) -> "collections.OrderedDict[str, int]":
    flat: dict[str, int] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(f"{prefix}.{key}" if prefix else key, item)
        else:
            flat[prefix] = value

    walk("", nested)
    return collections.OrderedDict(sorted(flat.items()))


def empty_cache() -> None:
    """Gives cached memory that no tensor uses back to the driver."""
    if _C.is_initialized():
        _C.empty_cache()


def memory_stats(device: _device_t = None) -> "collections.OrderedDict[str, int]":
    """The allocator's statistics of a device, e.g. `allocated_bytes.all.peak`; keys as torch.cuda.memory_stats'."""
    return _flatten(torch._C._accelerator_getDeviceStats(_index(device)))


def memory_allocated(device: _device_t = None) -> int:
    """Bytes that tensors use now."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: _device_t = None) -> int:
    """Most bytes that tensors used, since the start or `reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: _device_t = None) -> int:
    """Bytes the allocator holds now, cached ones included."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: _device_t = None) -> int:
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: _device_t = None) -> None:
    torch._C._accelerator_resetPeakStats(_index(device))


def reset_accumulated_memory_stats(device: _device_t = None) -> None:
    torch._C._accelerator_resetAccumulatedStats(_index(device))


def reset_max_memory_allocated(device: _device_t = None) -> None:
    """Older name of `reset_peak_memory_stats`, as in torch.cuda."""
    reset_peak_memory_stats(device)


def mem_get_info(device: _device_t = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the driver sees them."""
    return _C.mem_get_info(device_index(device))


def memory_snapshot() -> list[dict[str, Any]]:
    """Every segment of every device with its blocks, in address order."""
    return _C.memory_snapshot()


def set_per_process_memory_fraction(fraction: float, device: _device_t = None) -> None:
    """Limits what this process may reserve to a part of the device's memory; beyond it is out of memory."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    _C.set_memory_fraction(fraction, device_index(device))


def get_per_process_memory_fraction(device: _device_t = None) -> float:
    return _C.memory_fraction(device_index(device))


def caching_allocator_alloc(size: int, device: _device_t = None, stream: torch.Stream | None = None) -> int:
    """Memory for another library, as an address; give it back with `caching_allocator_delete`."""
    return _C.raw_alloc(size, torch._C._accelerator_getStream(_index(device)) if stream is None else stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    _C.raw_delete(mem_ptr)


def host_memory_stats() -> "collections.OrderedDict[str, int]":
    """Statistics of pinned memory; keys as torch.cuda.host_memory_stats'."""
    return _flatten(_C.host_memory_stats())


def reset_peak_host_memory_stats() -> None:
    _C.reset_peak_host_memory_stats()


def reset_accumulated_host_memory_stats() -> None:
    _C.reset_accumulated_host_memory_stats()


_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Requested memory", "requested_bytes", True),
    ("Reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocs", "active", False),
    ("Reserved segments", "segment", False),
    ("Non-releasable allocs", "inactive_split", False),
)


def memory_summary(device: _device_t = None, abbreviated: bool = False) -> str:
    """The statistics of a device as a table."""
    index = _index(device)
    stats = memory_stats(index)

    def size(value: int, in_bytes: bool) -> str:
        if not in_bytes:
            return f"{value:,}"
        amount, units = float(value), ["B", "KiB", "MiB", "GiB", "TiB"]
        while abs(amount) >= 1024 and len(units) > 1:
            amount, _ = amount / 1024, units.pop(0)
        return f"{amount:.0f} {units[0]}" if units[0] == "B" else f"{amount:.1f} {units[0]}"

    columns = ("current", "peak", "allocated", "freed")
    lines = [
        f"mybackend memory summary, device {index}",
        f"out of memory: {stats['num_ooms']}   retries after emptying the cache: {stats['num_alloc_retries']}",
        f"{'':24}" + "".join(f"{name:>14}" for name in columns),
    ]
    pools = ("all",) if abbreviated else ("all", "large_pool", "small_pool")
    for title, key, in_bytes in _ROWS:
        for pool in pools:
            name = title if pool == "all" else f"  {pool.replace('_', ' ')}"
            values = (size(stats[f"{key}.{pool}.{column}"], in_bytes) for column in columns)
            lines.append(f"{name:24}" + "".join(f"{value:>14}" for value in values))
    return "\n".join(lines)
