"""Lowerings of users' operators: from an extern call to expressions inlined into the fused kernel.

A lowering is kept for mybackend's tensors only; on other devices the operator stays what it was.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["install", "register_lowering", "version"]

_lowerings: dict[torch._ops.OpOverload, Callable[..., Any]] = {}
_installed = False


def register_lowering(operator: Any, lowering: Callable[..., Any] | None = None) -> Any:
    """Registers how `torch.compile` lowers an operator on mybackend.

    Args:
        operator: a `torch.ops.<namespace>.<name>` or one overload of it.
        lowering: called with the operator's arguments, tensors being Inductor's; returns Inductor's tensors. Usually
            calls into `torch._inductor.lowering`, or is made by `mybackend.compile.pointwise`.

    Used as a decorator when `lowering` is left out. Raises TypeError for anything that is not an operator.
    """
    if lowering is None:
        return lambda function: register_lowering(operator, function)
    for overload in _overloads(operator):
        _lowerings[overload] = lowering
        if _installed:
            _install_one(overload, lowering)
    return lowering


def version() -> str:
    """Identity of what is registered, for the keys of Inductor's caches."""
    digest = hashlib.sha256()
    for overload, lowering in sorted(_lowerings.items(), key=lambda item: str(item[0])):
        digest.update(str(overload).encode())
        digest.update(_source(lowering).encode())
    return digest.hexdigest()


def install() -> None:
    """Called once Inductor is loaded."""
    global _installed
    _installed = True
    for overload, lowering in _lowerings.items():
        _install_one(overload, lowering)


def _overloads(operator: Any) -> list[torch._ops.OpOverload]:
    if isinstance(operator, torch._ops.OpOverload):
        return [operator]
    if isinstance(operator, torch._ops.OpOverloadPacket):
        return [getattr(operator, name) for name in operator.overloads()]
    raise TypeError(f"register_lowering(): expected an operator (torch.ops.namespace.name), got {operator!r}")


def _source(lowering: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(lowering)
    except (OSError, TypeError):
        return getattr(lowering, "__qualname__", repr(type(lowering)))


def _install_one(overload: torch._ops.OpOverload, lowering: Callable[..., Any]) -> None:
    from torch._inductor import lowering as inductor

    others = inductor.lowerings.get(overload)

    def lowered(*args: Any, **kwargs: Any) -> Any:
        if _on_mybackend(args, kwargs):
            return lowering(*args, **kwargs)
        if others is not None:
            return others(*args, **kwargs)
        return inductor.fallback_handler(overload, add_to_fallback_set=False)(*args, **kwargs)

    inductor.lowerings[overload] = lowered


def _on_mybackend(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    from torch._inductor import ir
    from torch.utils._pytree import tree_leaves

    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, ir.TensorBox)]
    devices = [tensor.get_device() for tensor in tensors]
    return any(device is not None and device.type == "mybackend" for device in devices)
