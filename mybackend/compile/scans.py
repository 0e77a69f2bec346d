"""Scans in generated code: how values are combined, and what stands for one in a loop.

The combination becomes a struct of the scanned values with a function `of(before, after)`. In the lanes form a scan is
carried along in one accumulator for each value. In the rows form it splits the loop's lines into stages: all lanes of a
round are computed up to the scan, then scanned (prelude/scan.h), then carried on with. In the text of a loop a scan is
the line `$name$` until the kernel's form is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import OpsValue

from mybackend.compile.c_types import c_type, compute_dtype
from mybackend.compile.reductions import Accumulator

__all__ = ["Scan", "make_scan"]

Values = tuple[Any, ...]

# Operators whose scans prelude/scan.h knows how to vectorise, with their names there.
_PLAIN = {"+": "mb_add", "*": "mb_multiply"}


@dataclass
class Scan:
    name: str
    struct: str  # the name of the struct
    carries: list[Accumulator]  # what the lanes form carries along
    values: list[str]
    results: list[tuple[Any, str]]  # result variables, with their types

    @property
    def marker(self) -> str:
        return f"${self.name}$"

    def given(self) -> str:
        """What a stage before the scan leaves for it."""
        return "".join(f"{self.name}_lanes.v{n}[lane] = {value};\n" for n, value in enumerate(self.values))

    def in_lanes(self, index: str) -> str:
        """Lines that scan one element of each lane; `index` is that of the element."""
        carried = ", ".join(f"{carry.name}[lane]" for carry in self.carries)
        values = ", ".join(self.values)
        combined = f"{self.struct}::of({self.struct}{{{carried}}}, {self.struct}{{{values}}})"
        lines = [f"const {self.struct} {self.name} = {combined};"]
        for n, (carry, value, (result, of)) in enumerate(zip(self.carries, self.values, self.results, strict=True)):
            lines.append(f"const {of} {result} = {index} == 0 ? {value} : {self.name}.v{n};")
            lines.append(f"{carry.name}[lane] = {result};")
        return "\n".join(lines)

    def result_lines(self) -> dict[str, str]:
        """Result variable -> its definition in a stage after the scan."""
        return {
            str(result): f"const {of} {result} = {self.name}_lanes.v{n}[lane];"
            for n, (result, of) in enumerate(self.results)
        }


def make_scan(
    kernel: Any, dtypes: tuple[torch.dtype, ...], combine: Callable[[Values, Values], Values], values: Values
) -> Scan:
    """The scan of `values`; its results are new variables of the kernel."""
    dtypes = tuple(compute_dtype(dtype) for dtype in dtypes)
    types = [c_type(dtype) for dtype in dtypes]
    name = kernel.new_name("scan")
    given = [f"{of}({value})" for of, value in zip(types, values, strict=True)]
    results = [(kernel.cse.newvar(dtype=dtype, shape=()), of) for dtype, of in zip(dtypes, types, strict=True)]
    carries = [kernel.new_accumulator(of, f"{of}(0)", None) for of in types]
    return Scan(name, _struct(kernel, dtypes, types, combine), carries, given, results)


def _struct(kernel: Any, dtypes: Values, types: list[str], combine: Callable[[Values, Values], Values]) -> str:
    """Defines the struct in the kernel, once for each way to combine; returns its name."""
    lines = IndentedBuffer()
    with kernel.apart(lines) as cse:
        before, after = (
            tuple(cse.namedvar(f"{side}_v{n}", dtype=dtype, shape=()) for n, dtype in enumerate(dtypes))
            for side in ("before", "after")
        )
        combined = [value.value if isinstance(value, OpsValue) else value for value in combine(before, after)]
    written = lines.getvalue().splitlines()
    combines = {f"const {types[0]} tmp0 = {before[0]} {sign} {after[0]};": op for sign, op in _PLAIN.items()}
    arguments = [f"const {of} {side}_v{n} = {side}.v{n};" for side in ("before", "after") for n, of in enumerate(types)]
    each = range(len(types))
    return str(
        kernel.define_struct(
            "\n".join(
                [
                    "struct STRUCT {",
                    f"  enum {{ leaves = {len(types)} }};",
                    f"  typedef {types[0]} first;",
                    f"  typedef {combines.get(chr(10).join(written), 'mb_unknown')} op;",
                    *(f"  {of} v{n};" for n, of in enumerate(types)),
                    "  struct many {",
                    *(f"    {of} v{n}[MB_LANES];" for n, of in enumerate(types)),
                    "  };",
                    "  MB_FN STRUCT get(const many& from, int i) {",
                    f"    return STRUCT{{{', '.join(f'from.v{n}[i]' for n in each)}}};",
                    "  }",
                    "  MB_FN void set(many& to, int i, STRUCT x) {",
                    *(f"    to.v{n}[i] = x.v{n};" for n in each),
                    "  }",
                    "  MB_FN STRUCT of(STRUCT before, STRUCT after) {",
                    *(f"    {line}" for line in [*arguments, *written]),
                    f"    return STRUCT{{{', '.join(f'{of}({x})' for of, x in zip(types, combined, strict=True))}}};",
                    "  }",
                    "};",
                ]
            )
        )
    )
