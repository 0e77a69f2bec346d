"""Lowerings of users' operators: from an extern call to expressions inlined into the fused kernel.

A lowering is kept for mybackend's tensors only; on other devices the operator stays what it was.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["expression", "install", "overloads_of", "pointwise", "register_lowering", "source_of", "version"]

_lowerings: dict[torch._ops.OpOverload, Callable[..., Any]] = {}
_installed = False


def register_lowering(operator: Any, lowering: Callable[..., Any] | None = None) -> Any:
    """Registers how `torch.compile` lowers an operator on mybackend.

    Args:
        operator: a `torch.ops.<namespace>.<name>` or one overload of it.
        lowering: called with the operator's arguments, tensors being Inductor's; returns Inductor's tensors. Usually
            made by `pointwise` or `expression`, or calls into `torch._inductor.lowering`.

    Used as a decorator when `lowering` is left out. Raises TypeError for anything that is not an operator.
    """
    if lowering is None:
        return lambda function: register_lowering(operator, function)
    for overload in overloads_of(operator, "register_lowering()"):
        _lowerings[overload] = lowering
        if _installed:
            _install_one(overload, lowering)
    return lowering


def pointwise(function: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering that computes each element from the operands' elements.

    Args:
        function: called as `function(ops, *operands)`: `ops` has Inductor's operations (torch._inductor.ops_handler) as
            methods, e.g. `ops.mul(x, ops.exp(y))`. Tensors are broadcast and promoted as by arithmetic operators;
            Python numbers come as constants of the promoted dtype.
    """

    return _elementwise(lambda ops, dtype, *operands: function(ops, *operands), function)


def expression(text: str) -> Callable[..., Any]:
    """A lowering from a C++ expression over the operands `{0}`, `{1}`, ...

    Operands are float, double or integers (half and bfloat16 come as float); the functions of the prelude may be used:
    mb_exp, mb_log, mb_tanh, mb_sqrt, mb_maximum, ... The result has the promoted dtype of the operands.
    """

    return _elementwise(
        lambda ops, dtype, *operands: ops.inline_asm_elementwise(*operands, asm=text, dtype=dtype), text
    )


def _elementwise(function: Callable[..., Any], source: Callable[..., Any] | str) -> Callable[..., Any]:
    """The lowering that applies `function(ops, dtype, *operands)`; `source` is what identifies it."""

    def lowering(*args: Any, **kwargs: Any) -> Any:
        from torch._inductor import lowering as inductor
        from torch._inductor.virtualized import ops

        if kwargs:
            raise TypeError(f"a lowering made of an expression takes operands by position, got {', '.join(kwargs)}")
        tensors = _promoted(args)
        dtype = tensors[0].get_dtype()
        return inductor.make_pointwise(lambda *operands: function(ops, dtype, *operands))(*tensors)

    lowering.source = source  # type: ignore[attr-defined]
    return lowering


def _promoted(args: tuple[Any, ...]) -> list[Any]:
    """Tensors of one shape and dtype: Python numbers become constants beside the tensors."""
    from torch._inductor import ir
    from torch._inductor import lowering as inductor

    kind = torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    dtype = inductor.get_promoted_dtype(*args, type_promotion_kind=kind)
    first = next(arg for arg in args if isinstance(arg, ir.TensorBox))
    converted = [
        inductor.to_dtype(arg, dtype)
        if isinstance(arg, ir.TensorBox)
        else inductor.full_like(first, arg, dtype=dtype, device=first.get_device())
        for arg in args
    ]
    return list(inductor.broadcast_tensors(*converted))


def version() -> str:
    """Identity of what is registered, for the keys of Inductor's caches."""
    digest = hashlib.sha256()
    for overload, lowering in sorted(_lowerings.items(), key=lambda item: str(item[0])):
        digest.update(str(overload).encode())
        digest.update(source_of(lowering).encode())
    return digest.hexdigest()


def install() -> None:
    """Called once Inductor is loaded."""
    global _installed
    _installed = True
    for overload, lowering in _lowerings.items():
        _install_one(overload, lowering)


def overloads_of(operator: Any, caller: str) -> list[torch._ops.OpOverload]:
    if isinstance(operator, torch._ops.OpOverload):
        return [operator]
    if isinstance(operator, torch._ops.OpOverloadPacket):
        return [getattr(operator, name) for name in operator.overloads()]
    raise TypeError(f"{caller}: expected an operator (torch.ops.namespace.name), got {operator!r}")


def source_of(lowering: Callable[..., Any]) -> str:
    """What identifies a lowering, or a function that takes part in one."""
    lowering = getattr(lowering, "source", lowering)
    if isinstance(lowering, str):
        return lowering
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
