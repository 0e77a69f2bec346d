"""Matrix products as templates: mm, addmm, bmm and baddbmm, with what follows them fused.

The tile's product is prelude/tile_product.h; the text here places tiles. A bias is not part of the template: it is
added by pointwise code, which is fused like an activation or a residual.

Without `max_autotune` a product is a template only where that has been measured to win (`prefers_template`); elsewhere
it stays the call that it is in eager code. With it, both are measured.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import ir
from torch._inductor import lowering as inductor
from torch._inductor.kernel import bmm as inductor_bmm
from torch._inductor.kernel import mm as inductor_mm
from torch._inductor.virtualized import V as virtualized

import mybackend
from mybackend.compile.lowerings import replace
from mybackend.compile.template import Parameters, Sizes, Template, ceil_div
from mybackend.compile.template_choice import TemplateChoice, can_measure, choose, realized
from mybackend.compile.template_kernel import TemplateCall

__all__ = ["DTYPES", "host_vendor", "install", "prefers"]

V: Any = virtualized
aten = torch.ops.aten

TILES = """
const mb_index across = (columns + TILE_N - 1) / TILE_N, down = (rows + TILE_M - 1) / TILE_M;
const mb_index most_rows = MB_EVEN_ROWS(rows, down, TILE_M);
MB_BLOCKS(block, blocks) {
  // Tiles of the same rows follow each other.
  const mb_index i = block / across % down * most_rows, j = block % across * TILE_N, batch = block / across / down;
  mb_tile_product<out_value, TILE_M, TILE_N, TILE_K>(
      mb_matrix<a_type>{a + batch * a_batch + i * a_row, a_row, a_column},
      mb_matrix<b_type>{b + batch * b_batch + j * b_column, b_row, b_column},
      int(rows - i < most_rows ? rows - i : most_rows), int(columns - j < TILE_N ? columns - j : TILE_N), depth,
      [&](const int row, const int first, const int last, const out_value* values) MB_INLINE_LAMBDA {
        store_row(batch * rows + i + row, j + first, j + last, values);
      });
}
"""
MM = """
const mb_index rows = a_size0, depth = a_size1, columns = b_size1, a_batch = 0, b_batch = 0;
const mb_index a_row = a_stride0, a_column = a_stride1, b_row = b_stride0, b_column = b_stride1;
"""
BMM = """
const mb_index rows = a_size1, depth = a_size2, columns = b_size2, a_batch = a_stride0, b_batch = b_stride0;
const mb_index a_row = a_stride1, a_column = a_stride2, b_row = b_stride1, b_column = b_stride2;
"""

# The first is used without measuring. On the host a tile of b is packed once for TILE_M rows.
HOST_TILES = (
    {"TILE_M": 256, "TILE_N": 64, "TILE_K": 256},
    {"TILE_M": 64, "TILE_N": 64, "TILE_K": 256},
    {"TILE_M": 128, "TILE_N": 128, "TILE_K": 256},
)
GPU_TILES = (
    {"TILE_M": 64, "TILE_N": 64, "TILE_K": 16},
    {"TILE_M": 128, "TILE_N": 64, "TILE_K": 16},
    {"TILE_M": 128, "TILE_N": 128, "TILE_K": 8},
)

# Rows of a tile on the host, where they may be fewer so that each thread has as much to do; and how many rows of the
# product it takes as long as packing a tile of b.
FEWEST_ROWS, STEP = 64, 32
PACKING = 16

# Of 16-bit numbers: about as much work as the library needs to start.
SMALL_PRODUCT = 1 << 19

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def _blocks(sizes: Sizes, parameters: Parameters) -> Any:
    *batch, rows, columns = sizes["out"]
    tiles = ceil_div(rows, parameters["TILE_M"]) * ceil_div(columns, parameters["TILE_N"])
    return tiles * (batch[0] if batch else 1)


def _work(sizes: Sizes, parameters: Parameters) -> Any:
    """A vector of products counts as a step."""
    *_, rows, columns = sizes["out"]
    hint = functools.partial(V.graph.sizevars.optimization_hint, fallback=256)
    tile = min(hint(rows), parameters["TILE_M"]) * min(hint(columns), parameters["TILE_N"])
    return tile * (1 + hint(sizes["a"][-1]) // 8)


def _template(of_batches: bool) -> Template:
    return Template(
        name="bmm" if of_batches else "mm", inputs=("a", "b"), source=(BMM if of_batches else MM) + TILES,
        blocks=_blocks, work=_work, headers=("tile_product.h",),
        parameters=GPU_TILES if mybackend.driver() == "cuda" else HOST_TILES,
    )  # fmt: skip


@functools.cache
def host_vendor() -> str:
    """Who made the CPU, as /proc/cpuinfo has it; empty where it does not say."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next((line.split(":")[1].strip() for line in lines if line.startswith("vendor_id")), "")
    except OSError:
        return ""


def prefers_template(dtype: torch.dtype, rows: int, depth: int, columns: int) -> bool:
    """Whether the template beats the library, by what was measured (benchmarks/gemm.py).

    In float32 and float64 it does with AVX-512 on CPUs that are not Intel's, since MKL keeps to AVX2 there: up to twice
    as fast. With few rows, or columns for less than half a vector, a product is bound by memory and the library is as
    good. In 16 bits the library has instructions of its own, and loses only where its start takes longer than the work.
    """
    if mybackend.driver() != "host" or mybackend.get_device_capability(0)[0] != 4 or host_vendor() == "GenuineIntel":
        return False
    if dtype in (torch.float32, torch.float64):
        return rows >= 8 and columns >= 8
    return rows * depth * columns <= SMALL_PRODUCT


def prefers(dtype: torch.dtype, *sizes: Any) -> bool:
    """prefers_template for sizes that may be symbolic: rows, depth, columns."""
    return prefers_template(dtype, *(V.graph.sizevars.optimization_hint(size, fallback=256) for size in sizes))


def _shared_out(parameters: Parameters, sizes: Sequence[Any]) -> Parameters:
    """The parameters with as many rows to a tile as let the host's threads finish first; ties go to more rows."""
    if mybackend.driver() != "host":
        return parameters
    *batch, rows, columns = (V.graph.sizevars.optimization_hint(size, fallback=1024) for size in sizes)
    threads = torch.get_num_threads()

    def time(tile_rows: int) -> int:
        down = -(-rows // tile_rows)
        tiles = math.prod(batch) * down * -(-columns // parameters["TILE_N"])
        return int(-(-tiles // threads) * (-(-rows // down) + PACKING))

    most = parameters["TILE_M"]
    return {**parameters, "TILE_M": min(range(most, min(most, FEWEST_ROWS) - 1, -STEP), key=time)}


def install() -> None:
    """Puts these lowerings before Inductor's, for this device's tensors."""
    replace(aten.mm, functools.partial(_before, functools.partial(_product, inductor_mm.aten_mm)))
    replace(aten.bmm, functools.partial(_before, functools.partial(_product, inductor_bmm.aten_bmm)))
    replace(aten.addmm, functools.partial(_before, functools.partial(_sum, inductor_mm.aten_addmm)))
    replace(aten.baddbmm, functools.partial(_before, functools.partial(_sum, inductor_bmm.aten_baddbmm)))


def _before(lower: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def lowered(*args: Any, **kwargs: Any) -> Any:
        if set(kwargs) <= {"alpha", "beta"} and all(isinstance(arg, ir.TensorBox) for arg in args):
            result = lower(*args, **kwargs)
            if result is not None:
                return result
        return original(*args, **kwargs)

    return lowered


def _product(call: Any, a: Any, b: Any) -> Any:
    return _lowered(call, (), a, b, {}, None)


def _sum(call: Any, c: Any, a: Any, b: Any, *, alpha: Any = 1, beta: Any = 1) -> Any:
    """beta * c + alpha * (a @ b); where beta is 0, c is not read, as in eager code."""

    def finish(product: Any) -> Any:
        result = product if alpha == 1 else inductor.mul(product, alpha)
        if beta == 0:
            return result
        return inductor.add(result, c if beta == 1 else inductor.mul(c, beta))

    return _lowered(call, (c,), a, b, {"alpha": alpha, "beta": beta}, finish)


def _lowered(
    call: Any,
    added: Sequence[Any],
    a: Any,
    b: Any,
    options: dict[str, Any],
    finish: Callable[[Any], Any] | None,
) -> Any:
    """The product's node; None leaves it to Inductor's lowering."""
    device, dtype = a.get_device(), a.get_dtype()
    if device is None or device.type != "mybackend" or dtype not in DTYPES or b.get_dtype() != dtype:
        return None
    template, size = _template(of_batches=len(a.get_size()) == 3), [*a.get_size()[:-1], b.get_size()[-1]]
    if any(V.graph.sizevars.statically_known_equals(n, 0) for n in size):
        return None
    measured = can_measure()
    if not measured and not prefers(dtype, *a.get_size()[-2:], size[-1]):
        return None
    layout = ir.FixedLayout(device, dtype, size)
    operands = {"a": realized(a), "b": realized(b)}
    if not measured:
        tiled = TemplateCall(template, _shared_out(template.parameters[0], size), operands, layout)
        return TemplateChoice(tiled, list(operands.values()), finish).output_node()
    called = [realized(c) for c in added] + list(operands.values())
    # The autotuner makes the operands of templates, whose sum has the shape of the result.
    nodes = [realized(inductor.expand(c, size)) for c in added] + list(operands.values())
    choices: list[ir.ChoiceCaller] = [call.bind(called, layout, **options)]
    for parameters in template.parameters:
        choices.append(TemplateChoice(TemplateCall(template, parameters, operands, layout), nodes, finish))
    return choose(call.name, choices, nodes, layout)
