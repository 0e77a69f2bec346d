"""Automatic mixed precision: `torch.autocast("mybackend")` and `torch.amp.GradScaler("mybackend")` by torch.cuda.amp's names."""

from typing import Any

import torch

__all__ = ["GradScaler", "autocast", "get_amp_supported_dtype"]


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What `torch.autocast("mybackend", dtype=...)` accepts."""
    return [torch.float16, torch.bfloat16, torch.float32]


class autocast(torch.autocast):  # noqa: N801
    """torch.autocast for this device."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("mybackend", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def __getattr__(name: str) -> Any:
    # torch.amp.grad_scaler is not complete yet while torch is being imported.
    if name != "GradScaler":
        raise AttributeError(f"module 'mybackend.amp' has no attribute '{name}'")
    from functools import partial

    return partial(torch.amp.GradScaler, "mybackend")
