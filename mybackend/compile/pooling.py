"""The gradient of max pooling: each input gathers from the windows that it lies in.

The forward's offsets, positions of maxima in their windows, say which of them it was the maximum of: a number of one
byte is compared with what depends on the place alone, the same for all channels. Inductor's lowering compares indices,
computed from the offsets in 64 bits for each window of each element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor.virtualized import V as virtualized
from torch._inductor.virtualized import ops
from torch.utils._sympy.functions import FloorDiv, Max, Min

from mybackend.compile.lowerings import replace

__all__ = ["install"]

V: Any = virtualized

# More windows of one element than this are left to the operator, as Inductor does.
MOST_WINDOWS = 25


def install() -> None:
    replace(torch.ops.prims._low_memory_max_pool_offsets_to_indices, _remembering)
    replace(torch.ops.aten.max_pool2d_with_indices_backward, _lowering)


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    """The indices know the offsets that they were made of."""

    @functools.wraps(original)
    def offsets_to_indices(offsets: Any, *args: Any, **kwargs: Any) -> Any:
        indices = original(offsets, *args, **kwargs)
        indices.max_pool_offsets = offsets
        return indices

    return offsets_to_indices


def _lowering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def max_pool2d_with_indices_backward(
        grad_output: Any,
        x: Any,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: Any,
        indices: Any,
    ) -> Any:
        offsets = getattr(indices, "max_pool_offsets", None)
        if offsets is not None and grad_output.get_device().type == "mybackend":
            kernel, step, before, apart = map(_pair, (kernel_size, stride or kernel_size, padding, dilation))
            windows = [-(-k // s) for k, s in zip(kernel, step, strict=True)]
            if apart == [1, 1] and windows[0] * windows[1] <= MOST_WINDOWS:
                return _gathered(grad_output, x, offsets, kernel, step, before, windows)
        return original(grad_output, x, kernel_size, stride, padding, dilation, ceil_mode, indices)

    return max_pool2d_with_indices_backward


def _pair(number: Any) -> list[int]:
    """An `int[2]` of a schema, which may have been given as one number."""
    return [number] * 2 if isinstance(number, int) else [*number, *number][:2]


def _gathered(
    grad_output: Any,
    x: Any,
    offsets: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    windows: Sequence[int],
) -> Any:
    for read in (grad_output, offsets):
        read.realize()  # each element is read by as many as there are windows
    load_gradient, load_offset = grad_output.make_loader(), offsets.make_loader()
    pooled = grad_output.get_size()[-2:]

    def gradient(index: Sequence[Any]) -> Any:
        *outer, row, column = index
        place = [row + padding[0], column + padding[1]]
        first = [Max(0, FloorDiv(p - k + s, s)) for p, k, s in zip(place, kernel, stride, strict=True)]
        end = [Min(n, FloorDiv(p, s) + 1) for p, s, n in zip(place, stride, pooled, strict=True)]
        total = None
        for number in range(windows[0] * windows[1]):
            window = [f + n for f, n in zip(first, divmod(number, windows[1]), strict=True)]
            in_window = [p - w * s for p, w, s in zip(place, window, stride, strict=True)]
            offset = ops.index_expr(in_window[0] * kernel[1] + in_window[1], torch.int32)
            # One past the last window is read as the last, and not counted.
            read = [*outer, *(Max(0, Min(w, e - 1)) for w, e in zip(window, end, strict=True))]
            counts = ops.eq(ops.to_dtype(load_offset(read), torch.int32), offset)
            for w, e in zip(window, end, strict=True):
                counts = ops.and_(counts, ops.lt(ops.index_expr(w, torch.int32), ops.index_expr(e, torch.int32)))
            part = ops.where(counts, load_gradient(read), ops.constant(0.0, grad_output.get_dtype()))
            total = part if total is None else ops.add(total, part)
        return total

    result = ir.Pointwise.create(
        device=grad_output.get_device(), dtype=grad_output.get_dtype(), inner_fn=gradient, ranges=list(x.get_size())
    )
    last = any(_in_channels_last(read) for read in (x, grad_output))
    return ir.ExternKernel.require_channels_last(result) if last else result


def _in_channels_last(x: Any) -> bool:
    stride = x.maybe_get_stride()
    return len(x.get_size()) == 4 and stride is not None and V.graph.sizevars.statically_known_equals(stride[1], 1)
