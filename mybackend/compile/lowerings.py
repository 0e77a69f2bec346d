"""Lowerings that are not right, or not good, for this device as Inductor has them. Each says why, and until when."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._inductor import config, ir
from torch._inductor import lowering as inductor
from torch._inductor.utils import is_pointwise_use
from torch._inductor.virtualized import V as virtualized

import mybackend

__all__ = ["install", "replace"]

V: Any = virtualized
aten = torch.ops.aten

# Elements of a concatenation that are worth a launch for each of its parts.
WORTH_PARTS = 1 << 15

# Of the parts of a concatenation that is one kernel (torch 2.11 has one of them).
LIMITS = [name for name in ("max_pointwise_cat_inputs", "max_complex_pointwise_cat_inputs") if hasattr(config, name)]


def install() -> None:
    for overload in (aten.argmax.default, aten.argmin.default):
        inductor.lowerings[overload] = _contiguous_first(inductor.lowerings[overload])
    _keep_as_calls()
    replace(aten.cat, _in_slices)
    inductor.use_two_step_variance = _two_step_variance(inductor.use_two_step_variance)


def replace(packet: Any, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Puts what `make` makes of Inductor's lowering in its place: by overload for graphs, by name for lowerings."""
    inductor.lowerings[packet.default] = inductor.lowerings[packet] = make(inductor.lowerings[packet.default])


def _keep_as_calls() -> None:
    """An operator with a lowering but no C++ form is a hard error of Inductor's; as an extern call it works."""
    from torch._inductor.codegen.common import pointwise_overrides_data

    from mybackend.compile.overrides import Overrides

    for name, data in pointwise_overrides_data.items():
        packet = getattr(aten, data.name, None)
        if packet is None or not Overrides._is_unimplemented(name):
            continue
        for overload in (getattr(packet, overload_name) for overload_name in packet.overloads()):
            if overload in inductor.lowerings:
                inductor.lowerings[overload] = _called(overload, inductor.lowerings[overload])


def _called(overload: torch._ops.OpOverload, lowering: Callable[..., Any]) -> Callable[..., Any]:
    call = inductor.fallback_handler(overload, add_to_fallback_set=False)

    @functools.wraps(lowering)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        ours = any(_on_mybackend(arg) for arg in args if isinstance(arg, ir.TensorBox))
        return call(*args, **kwargs) if ours else lowering(*args, **kwargs)

    return lowered


def _on_mybackend(x: Any) -> bool:
    device = x.get_device()
    return device is not None and device.type == "mybackend"


def _contiguous_first(lowering: Callable[..., Any]) -> Callable[..., Any]:
    """argmax over several dimensions counts elements in the order of the loop, which follows memory.

    Inductor passes the logical index to Triton and C++ kernels only, so that elsewhere `x.t().argmax()` is silently the
    position in x. Needed while `lowering.make_reduction` names those backends.
    """

    @functools.wraps(lowering)
    def lowered(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        several = dim is None or (isinstance(dim, (list, tuple)) and len(dim) != 1)
        if several and _on_mybackend(x):
            x = ir.ExternKernel.require_contiguous(x)
        return lowering(x, dim, keepdim)

    return lowered


def _in_slices(lowering: Callable[..., Any]) -> Callable[..., Any]:
    """On the host a concatenation that is kept is written part by part, as on the CPU: Inductor asks for it by name.

    On a GPU it is one kernel whose elements choose among the parts, of which the host would compute each. Where there
    is little to do one launch is better than several.
    """

    @functools.wraps(lowering)
    def lowered(inputs: Any, dim: int = 0) -> Any:
        if not _on_mybackend(inputs[0]) or mybackend.driver() != "host":
            return lowering(inputs, dim)
        kept = not all(is_pointwise_use(use) for use in V.current_node.users)
        size = sum(V.graph.sizevars.optimization_hint(x.get_numel(), fallback=WORTH_PARTS) for x in inputs)
        with config.patch(dict.fromkeys(LIMITS, 0) if kept and size >= WORTH_PARTS else {}):
            return lowering(inputs, dim)

    return lowered


def _two_step_variance(original: Callable[..., bool]) -> Callable[..., bool]:
    """Variance as two sums, of x and of (x - mean)^2, rather than by Welford's update.

    Both loops vectorise, and the second one reads what the first one left in the cache.
    """

    @functools.wraps(original)
    def use_two_step_variance(x: Any, *args: Any, **kwargs: Any) -> bool:
        return _on_mybackend(x) or original(x, *args, **kwargs)

    return use_two_step_variance
