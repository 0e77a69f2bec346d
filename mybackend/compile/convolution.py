"""Convolutions of 1 x 1 as matrix products, and their gradients too.

In channels_last such a convolution is a product of what is in memory: of (places, channels) and (channels, filters). It
is one where a template of products is preferred (gemm.py), and where there is little to do: a product takes less time
to start than a convolution of oneDNN, two for the gradients less than half. Large ones oneDNN does as well or better.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch._inductor import config, ir
from torch._inductor import lowering as inductor
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V as virtualized
from torch._inductor.virtualized import ops
from torch.fx.experimental.symbolic_shapes import free_symbols
from torch.utils._sympy.functions import FloorDiv, ModularIndexing

import mybackend
from mybackend.compile.gemm import DTYPES, prefers
from mybackend.compile.lowerings import replace

__all__ = ["install"]

V: Any = virtualized
aten = torch.ops.aten

# Multiplications up to which products are faster on the host even where they are the library's: at 2 ** 22 by 1.1 to
# 1.6, at 2 ** 24 by 1.05 to 1.2, of 1e8 some are slower (benchmarks/convolution.py, one and two threads of a Zen 4).
SMALL_CONVOLUTION = 1 << 22

# Inductor has no template of a convolution for this device. Left to tune one of 1 x 1, it makes a product of it, and
# fails at the sizes that _is_matrix refuses.
AS_A_CALL = {"conv_1x1_as_mm": False, "max_autotune": False, "max_autotune_gemm": False}


def install() -> None:
    replace(aten.convolution, _convolution)
    replace(aten.convolution_backward, _convolution_backward)


def _convolution(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def lowered(
        x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int,
    ) -> Any:  # fmt: skip
        ours = _is_ours(weight)
        if not (
            ours
            and V.graph.layout_opt
            and _is_matrix(x, weight, stride, padding, transposed, groups)
            and _is_worthwhile(x, weight, stride)
        ):
            with config.patch(AS_A_CALL if ours else {}):
                return original(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        x = _stepped(ir.ExternKernel.require_channels_last(x), stride)
        batch, _, *places = x.get_size()
        matrix = inductor.permute(_matrix(weight), [1, 0])
        product = _product(_rows(x), matrix) if bias is None else inductor.lowerings[aten.addmm](bias, _rows(x), matrix)
        # Not [..., -1], as Inductor's conv_1x1_as_mm has it: a quotient of symbols has no order among strides.
        of_places = inductor.view(product, [batch, *places, weight.get_size()[0]])
        return inductor.permute(of_places, [0, 3, 1, 2])

    return lowered


def _is_worthwhile(x: Any, weight: Any, stride: Sequence[int]) -> bool:
    if config.conv_1x1_as_mm or config.max_autotune or config.max_autotune_gemm:
        return True
    filters, depth = weight.get_size()[:2]
    rows = _places(x, stride)
    return _is_small(rows, depth, filters) or prefers(x.get_dtype(), rows, depth, filters)


def _convolution_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def lowered(
        grad: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int, output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        operands = [node.meta["val"] for node in V.current_node.args[:2]]
        if not (
            _is_ours(weight)
            and _is_matrix(x, weight, stride, padding, transposed, groups)
            and all(value.stride(1) == 1 for value in operands)
            and _is_small(_places(x, stride), *weight.get_size()[:2])
        ):
            return original(
                grad, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
            )
        filters, channels = weight.get_size()[:2]
        rows, size = _rows(grad), x.get_size()
        of_input = of_weight = of_bias = None
        if output_mask[0]:
            batch, _, *places = grad.get_size()
            of_places = inductor.view(_product(rows, _matrix(weight)), [batch, *places, channels])
            of_input = inductor.permute(_spread(of_places, size[2:], stride), [0, 3, 1, 2])
        if output_mask[1]:
            product = _product(inductor.permute(rows, [1, 0]), _rows(_stepped(x, stride)))
            of_weight = inductor.view(product, weight.get_size())
        if output_mask[2]:
            of_bias = inductor.sum_(grad, [0, 2, 3])
        return [of_input, of_weight, of_bias]

    return lowered


def _is_ours(weight: Any) -> bool:
    device = weight.get_device()
    return device is not None and device.type == "mybackend" and mybackend.driver() == "host"


def _is_matrix(x: Any, weight: Any, stride: Sequence[Any], padding: Any, transposed: bool, groups: int) -> bool:
    """Whether a convolution is one of 1 x 1 that reads each place of its input at most once.

    Inductor must be able to divide by the number of places again: where they are skipped it must be known, and else
    each size is a number or a symbol, and nothing like `s - 1`.
    """
    size = x.get_size()
    return (
        weight.get_dtype() in DTYPES
        and len(size) == 4
        and list(weight.get_size()[2:]) == [1, 1]
        and (list(stride) == [1, 1] or not free_symbols([*stride, *size[2:]]))
        and all(n.is_Integer or n.is_Symbol for n in map(sympy.sympify, size))
        and not any(padding)
        and not transposed
        and groups == 1
    )


def _places(x: Any, stride: Sequence[int]) -> Any:
    batch, _, *size = x.get_size()
    return sympy_product([batch, *(FloorDiv(n - 1, step) + 1 for n, step in zip(size, stride, strict=True))])


def _is_small(*sizes: Any) -> bool:
    return bool(V.graph.sizevars.optimization_hint(sympy_product(sizes), fallback=1 << 30) <= SMALL_CONVOLUTION)


def _stepped(x: Any, stride: Sequence[int]) -> Any:
    """The places of (batch, channels, height, width) that a convolution of 1 x 1 reads."""
    for dim, step in enumerate(stride, 2):
        if step != 1:
            x = inductor.slice_(x, dim, 0, x.get_size()[dim], step)
    return x


def _spread(x: Any, size: Sequence[Any], stride: Sequence[int]) -> Any:
    """(batch, height, width, channels) at every step of a larger `size`, and zeros between: _stepped's gradient."""
    if all(step == 1 for step in stride):
        return x
    x.realize()
    load = x.make_loader()

    def inner(index: Sequence[Any]) -> Any:
        batch, *place, channel = index
        read = [batch, *(FloorDiv(i, step) for i, step in zip(place, stride, strict=True)), channel]
        skipped = [ModularIndexing(i, 1, step) for i, step in zip(place, stride, strict=True) if step != 1]
        zero = ops.constant(0, torch.int32)
        is_read = [ops.eq(ops.index_expr(i, torch.int32), zero) for i in skipped]
        # Not ops.masked: what is chosen from may be read anyway, and without a branch the loop vectorises.
        return ops.where(functools.reduce(ops.and_, is_read), load(read), ops.constant(0, x.get_dtype()))

    batch, _, _, channels = x.get_size()
    ranges = [batch, *size, channels]
    return ir.Pointwise.create(device=x.get_device(), dtype=x.get_dtype(), inner_fn=inner, ranges=ranges)


def _rows(x: Any) -> Any:
    """(batch, channels, height, width) as (places, channels)."""
    batch, channels, *places = x.get_size()
    return inductor.view(inductor.permute(x, [0, 2, 3, 1]), [sympy_product([batch, *places]), channels])


def _matrix(weight: Any) -> Any:
    return inductor.view(weight, weight.get_size()[:2])


def _product(a: Any, b: Any) -> Any:
    return inductor.lowerings[aten.mm](a, b)
