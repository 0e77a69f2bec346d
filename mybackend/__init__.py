"""mybackend: a PyTorch device, `torch.device("mybackend")`, and its module, `torch.mybackend`.

`import torch` imports this package by itself (entry point `torch.backends`); `import mybackend` first works as well.
The name `_autoload` must exist before torch is imported here: torch then calls it in the middle of this file.

A failure is raised to who imported mybackend, but never to who imported torch: they get a warning and a torch without
the device. `import mybackend` then raises the reason, each time it is tried: torch cannot be rid of half a device.
"""

import sys as _sys

_failure: BaseException | None = None
_by_torch = getattr(getattr(_sys.modules.get("torch"), "__spec__", None), "_initializing", False)


def _autoload() -> None:
    """Called by `import torch` after it has imported this package."""
    if _failure is None:
        return
    import traceback
    import warnings

    reason = "".join(traceback.format_exception(_failure)).rstrip()
    warnings.warn(
        f"mybackend is installed but could not be loaded, so torch has no such device:\n{reason}", stacklevel=2
    )
    del _sys.modules[__name__]  # the next import runs this file again, and raises


try:
    from mybackend import _startup

    _startup.load()

    from mybackend import _compile_hook, amp, graphs, memory, random, streams
    from mybackend.amp import get_amp_supported_dtype
    from mybackend.device import (
        _device_t as _device_t,
    )
    from mybackend.device import (
        _DeviceGuard as _DeviceGuard,
    )
    from mybackend.device import (
        _exchange_device as _exchange_device,
    )
    from mybackend.device import (
        _is_in_bad_fork as _is_in_bad_fork,
    )
    from mybackend.device import (
        _lazy_init as _lazy_init,
    )
    from mybackend.device import (
        _maybe_exchange_device as _maybe_exchange_device,
    )
    from mybackend.device import (
        can_device_access_peer,
        current_device,
        device,
        device_count,
        device_of,
        driver,
        get_device_capability,
        get_device_name,
        get_device_properties,
        init,
        is_available,
        is_bf16_supported,
        is_initialized,
        set_device,
        synchronize,
    )
    from mybackend.fallback import fallbacks, reset_fallbacks
    from mybackend.graphs import Graph, graph, graph_pool_handle, is_current_stream_capturing
    from mybackend.memory import (
        caching_allocator_alloc,
        caching_allocator_delete,
        empty_cache,
        get_per_process_memory_fraction,
        host_memory_stats,
        max_memory_allocated,
        max_memory_reserved,
        mem_get_info,
        memory_allocated,
        memory_reserved,
        memory_snapshot,
        memory_stats,
        memory_summary,
        reset_accumulated_host_memory_stats,
        reset_accumulated_memory_stats,
        reset_max_memory_allocated,
        reset_peak_host_memory_stats,
        reset_peak_memory_stats,
        set_per_process_memory_fraction,
    )
    from mybackend.random import (
        default_generators,
        get_rng_state,
        get_rng_state_all,
        initial_seed,
        manual_seed,
        manual_seed_all,
        seed,
        seed_all,
        set_rng_state,
        set_rng_state_all,
    )
    from mybackend.streams import (
        Event,
        ExternalStream,
        Stream,
        StreamContext,
        current_stream,
        default_stream,
        set_stream,
        stream,
    )

    _startup.register(_sys.modules[__name__])
    _compile_hook.install()
except Exception as error:
    _failure = _startup.failure = error
    if not _by_torch:
        raise


def __getattr__(name: str) -> object:
    # torch.utils.checkpoint reads this to decide whether there is random state to keep.
    if name == "_initialized":
        return is_initialized()
    _compile_hook.inductor_attribute(name)
    raise AttributeError(f"module 'mybackend' has no attribute '{name}'")


__all__ = [
    "Event",
    "ExternalStream",
    "Graph",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "driver",
    "empty_cache",
    "fallbacks",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "graphs",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_fallbacks",
    "reset_max_memory_allocated",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]
