"""Automatic mixed precision: `torch.autocast` and `torch.amp.GradScaler` of this device, named as in torch.cuda.amp."""

import torch

__all__ = ["GradScaler", "autocast", "get_amp_supported_dtype"]


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What `torch.autocast("mybackend", dtype=...)` accepts."""
    return [torch.float16, torch.bfloat16, torch.float32]


class autocast(torch.autocast):
    """torch.autocast for this device."""

    def __init__(self, enabled: bool = True, dtype: torch.dtype = torch.float16, cache_enabled: bool = True) -> None:
        super().__init__("mybackend", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler for this device."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__("mybackend", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
