"""Words that the writers of all forms use for the text of a kernel's body."""

from __future__ import annotations

import re
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import IndentedBuffer

from mybackend.compile.segments import Segment

__all__ = ["block", "declare_checks", "replaced", "report_checks", "resolve", "simd", "tree_of"]

TOKEN = re.compile(r"\$(\w+)\$")

# Bytes of the widest vector, and the fewest elements worth one.
VECTOR = 64
SHORTEST_VECTOR = 8


def tree_of(kernel: Any, is_loop: bool) -> Any:
    return next(tree for tree in kernel.range_trees if tree.is_loop == is_loop)


def resolve(text: str, values: dict[str, str]) -> str:
    """Replaces `$name$`; accumulators that are not mentioned are scalars."""
    return TOKEN.sub(lambda match: values.get(match.group(1), match.group(1)), text)


def simd(walk: Any, clauses: str = "") -> str:
    """The line before a loop over the columns of a row that is to be vectorised.

    A compiler takes as many iterations at a time as a vector holds of the smallest type: with bytes among the operands
    a short loop would be left to its scalar remainder.
    """
    length = walk.row_numel()
    short = isinstance(length, (int, sympy.Integer)) and SHORTEST_VECTOR <= length < VECTOR
    if short and _has_bytes(walk.kernel):
        clauses = f"{clauses} simdlen({1 << (int(length).bit_length() - 1)})".lstrip()
    return f"MB_SIMD({clauses})"


def _has_bytes(kernel: Any) -> bool:
    types = kernel.args.python_argdefs()[3]
    return any(isinstance(of, torch.dtype) and of.itemsize == 1 for of in types)


def replaced(text: str, element: str, by: str) -> str:
    """The text with `by` for an element of memory; `out_ptr0[x0]` is not found in `in_out_ptr0[x0]`."""
    return re.sub(rf"(?<!\w){re.escape(element)}", lambda _: by, text)


def declare_checks(code: IndentedBuffer, segment: Segment) -> None:
    for check in segment.checks:
        code.writeline(f"mb_u64 {check.name} = 0;")


def report_checks(code: IndentedBuffer, segment: Segment) -> None:
    for check in segment.checks:
        code.writeline(f"mb_report_outside(mb_error, {check.name}, {check.size});")


def block(code: IndentedBuffer, *parts: Any) -> None:
    """`{`, the parts (lines or text) one level deeper, `}`; the opening line has been written."""
    with code.indent():
        for part in parts:
            code.splice(part) if isinstance(part, (str, IndentedBuffer)) else code.writelines(part)
    code.writeline("}")
