"""The elements form: pointwise code, in rows of neighbours, or in tiles where something is read across the rows.

A tile is some rows by some columns. What lies along the columns of memory is read along them, for the whole tile, and
turned: on a GPU through shared memory, on the host in vector registers. Then the rows are computed as ever, with what
was turned in the place of the loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V as virtualized

from mybackend.compile.chunks import Access, Chunks
from mybackend.compile.hoist import hoist
from mybackend.compile.lines import block, declare_checks, replaced, report_checks, resolve, simd, tree_of
from mybackend.compile.loops import Walk
from mybackend.compile.segments import Segment

__all__ = ["write_elements"]

V: Any = virtualized


# Bytes of an element that vector registers can turn; a complex128 is read across.
LARGEST_TURNED = 8

# The first and the last row of a tile.
ENDS = ("t.row", "(t.end_row - 1)")


def write_elements(kernel: Any, code: IndentedBuffer) -> None:
    walk = Walk(kernel, tree_of(kernel, is_loop=False), kernel.item_entries)
    written = _written(kernel)
    turned = {
        element: load
        for element, load in kernel.plain_loads.items()
        if load.pointer not in written
        and load.size <= LARGEST_TURNED
        and walk.lies_across(load.index)
        and walk.in_runs(load.index, *ENDS) is not None
    }
    if turned:
        _tiles(kernel, code, walk, turned)
        return
    chunks = Chunks(kernel, walk)
    if chunks:
        _chunks(kernel, code, walk, chunks)
        return
    rows = "MB_SQUARE_ROWS" if any(map(walk.lies_across, kernel.accesses)) else "MB_ROWS"
    code.writeline(f"{rows}(p, {walk.tree.prefix}numel, {walk.length_text()}) {{")
    with code.indent():
        code.writelines(walk.row_lines("p.row"))
        for segment in kernel.segments:
            declare_checks(code, segment)
            _columns(kernel, code, walk, segment, f"MB_COLUMNS({walk.column}, p)", "p.row")
            report_checks(code, segment)
    code.writeline("}")


def _chunks(kernel: Any, code: IndentedBuffer, walk: Walk, chunks: Chunks) -> None:
    code.writeline(f"MB_ROWS_BY({chunks.length}, p, {walk.tree.prefix}numel, {walk.length_text()}) {{")
    with code.indent():
        code.writelines(walk.row_lines("p.row"))
        code.writelines(chunks.declarations())
        first = [f"const mb_index {walk.column} = p.first;", *walk.column_lines("p.row")]
        for segment in kernel.segments:
            declare_checks(code, segment)
            code.writeline("{")
            block(code, first, chunks.reads())
            loop = f"MB_COLUMNS_BY({chunks.length}, {walk.column}, p)"
            _columns(kernel, code, walk, segment, loop, "p.row", chunks.held)
            code.writeline("{")
            block(code, first, chunks.writes())
            report_checks(code, segment)
    code.writeline("}")


def _columns(
    kernel: Any,
    code: IndentedBuffer,
    walk: Walk,
    segment: Segment,
    loop: str,
    row: str,
    change: Callable[[str], str] = str,
) -> None:
    """The loop over the columns of a row, and before it what is the same in all of them.

    `change` gives the text of the loop with what stands for some elements of memory.
    """
    text = change(resolve(segment.lines.getvalue(), {"once": ""}))
    lines = text.splitlines()
    names = {walk.column, walk.flat, *(str(e.name) for e in walk.entries if not walk.is_row(e))}
    same, lines, checks = hoist(lines, names, segment.checks, _written(kernel))
    code.writelines(same)
    clauses = " ".join(f"reduction(max : {check.name})" for check in checks)
    code.writelines([simd(walk, clauses), f"{loop} {{"])
    block(code, walk.column_lines(row), lines)


def _tiles(kernel: Any, code: IndentedBuffer, walk: Walk, turned: dict[str, Access]) -> None:
    code.writeline(f"MB_TILED(t, {walk.tree.prefix}numel, {walk.length_text()}) {{")
    names = {element: f"turned{number}" for number, element in enumerate(turned)}

    def held(text: str) -> str:
        for element, name in names.items():
            text = replaced(text, element, f"MB_HELD({name}, t, row, {walk.column})")
        return text

    with code.indent():
        for element, load in turned.items():
            code.writeline(f"MB_TURNED({load.stored}, {names[element]});")
        conditions = {c: None for load in turned.values() for c in walk.in_runs(load.index, *ENDS) or ()}
        code.writelines([f"const bool in_runs = {' && '.join(['MB_TALL(t)', *conditions])};", "if (in_runs) {"])
        with code.indent():
            code.writeline(f"MB_TILE_COLUMNS({walk.column}, t) {{")
            begins = [f"MB_COLUMN_AT({names[element]}, t, {walk.column}, {element});" for element in turned]
            block(code, ["const mb_index row = t.row;"], walk.row_lines("row"), walk.column_lines("row"), begins)
        code.writeline("} else {")
        with code.indent():
            code.writeline(f"MB_TILE_COLUMNS({walk.column}, t) {{")
            with code.indent():
                code.writelines(["MB_SIMD()", "MB_TILE_ROWS(row, t) {"])
                reads = [f"MB_ACROSS({names[element]}, t, row, {walk.column}) = {element};" for element in turned]
                block(code, walk.row_lines("row"), walk.column_lines("row"), reads)
            code.writeline("}")
        code.writeline("}")
        code.writelines([f"MB_TURN({name}, t);" for name in names.values()])
        code.writeline("MB_TILE_SYNC();")
        for segment in kernel.segments:
            declare_checks(code, segment)
            code.writeline("MB_ROWS_OF_TILE(row, t) {")
            with code.indent():
                code.writelines(walk.row_lines("row"))
                _columns(kernel, code, walk, segment, f"MB_COLUMNS_OF_TILE({walk.column}, t)", "row", held)
            code.writeline("}")
            report_checks(code, segment)
        code.writeline("MB_TILE_SYNC();")
    code.writeline("}")


def _written(kernel: Any) -> set[str]:
    """Pointers to memory that the kernel writes, by whatever name."""
    definitions, arguments, _, _ = kernel.args.python_argdefs()
    named = [(definition.name, argument) for definition, argument in zip(definitions, arguments, strict=True)]
    written = {argument for name, argument in named if name.startswith(("in_out", "out"))}
    return {name for name, argument in named if argument in written}
