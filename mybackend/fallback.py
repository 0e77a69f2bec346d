"""Operators that ran on the CPU instead of the device, counted (MYBACKEND_FALLBACK=warn, silent or error)."""

from mybackend import _C

__all__ = ["fallbacks", "reset_fallbacks"]


def fallbacks() -> dict[str, int]:
    """How often each operator was run on the CPU since the start or the last reset."""
    return dict(_C.fallbacks())


def reset_fallbacks() -> None:
    _C.reset_fallbacks()
