"""The text of a kernel's body, in one of three forms (the loops are those of prelude/loops.h):

elements  no reduction: rows of items, the inner loop over neighbours
rows      a reduction whose elements are neighbours: one item at a time, the inner loop over the reduction
lanes     a reduction whose items are neighbours: tiles of items, and a loop over the tile for each element of the
          reduction. Values that cross from one such loop to another are kept in arrays of lanes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import sympy
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.virtualized import V as virtualized

from mybackend.compile.elements import write_elements
from mybackend.compile.lines import block, declare_checks, report_checks, resolve, simd, tree_of
from mybackend.compile.loops import LONGEST_SUM, Walk
from mybackend.compile.reductions import Accumulator
from mybackend.compile.segments import Segment

__all__ = ["Form", "emit"]

V: Any = virtualized

DEFINED = re.compile(r"^\s*(?:const )?(\w+) ((?:tmp|index)\d+) =", re.MULTILINE)
USED = re.compile(r"\b(?:tmp|index)\d+\b")

# Terms that a lane adds up before the total is added to the whole's.
LONGEST_SERIAL_SUM = 64

# Elements of a reduction that a lane takes at a time, and the longest text that is written as often.
UNROLLED = 4
LONGEST_UNROLLED = 16

# A reduction over this few elements is better vectorised over its items, even where those are no neighbours.
SHORT_REDUCTION = 8
MANY_ITEMS = 64


class Form(IntEnum):
    """How items are spread over threads; the numbers are those of runtime::LaunchShape."""

    ELEMENTS = 0
    ROWS = 1
    LANES = 2


def emit(kernel: Any) -> str:
    kernel.form = _choose(kernel)
    writer = {Form.ELEMENTS: write_elements, Form.ROWS: _rows, Form.LANES: _lanes}[kernel.form]
    code = IndentedBuffer()
    for text, name in kernel.structs.items():
        code.splice(text.replace("STRUCT", name))
    writer(kernel, code)
    return str(code.getvalue())


def _choose(kernel: Any) -> Form:
    if not kernel.features.is_reduction():
        return Form.ELEMENTS
    sizevars = V.graph.sizevars
    items = sizevars.optimization_hint(kernel.features.numel, fallback=1)
    if items == 1:
        return Form.ROWS
    length = sizevars.optimization_hint(kernel.features.reduction_numel, fallback=1 << 20)
    if length <= SHORT_REDUCTION and items >= MANY_ITEMS:
        return Form.LANES
    # What does not depend on the reduction is read once for each item, however it lies.
    accesses = [index for index in kernel.accesses if _in_reduction(kernel, index)]
    along_items = sum(_is_neighbour(kernel, index, of_loop=False) for index in accesses)
    along_reduction = sum(_is_neighbour(kernel, index, of_loop=True) for index in accesses)
    return Form.LANES if along_items > along_reduction else Form.ROWS


def _in_reduction(kernel: Any, index: sympy.Expr) -> bool:
    entries = [kernel.range_tree_nodes.get(symbol) for symbol in index.free_symbols]
    return any(entry is not None and entry.root.is_loop for entry in entries)


def _is_neighbour(kernel: Any, index: sympy.Expr, of_loop: bool) -> bool:
    """Whether the next item (or the next element of the reduction) is next in memory."""
    for symbol in index.free_symbols:
        entry = kernel.range_tree_nodes.get(symbol)
        if entry is not None and entry.root.is_loop == of_loop and entry.divisor == 1:
            step = sympy.expand(index.subs(symbol, symbol + 1) - index)
            if V.graph.sizevars.statically_known_equals(step, 1):
                return True
    return False


# -- rows


def _rows(kernel: Any, code: IndentedBuffer) -> None:
    walk = Walk(kernel, tree_of(kernel, is_loop=False), kernel.item_entries)
    code.writeline(f"MB_BLOCKS({walk.flat}, {walk.tree.prefix}numel) {{")
    with code.indent():
        code.writelines(walk.flat_lines())
        for segment in kernel.segments:
            declare_checks(code, segment)
            if segment.is_loop:
                _row_loop(kernel, code, segment)
            else:
                code.splice(resolve(segment.lines.getvalue(), {"once": "MB_ONCE "}))
            report_checks(code, segment)
    code.writeline("}")


def _row_loop(kernel: Any, code: IndentedBuffer, segment: Segment) -> None:
    accumulators = segment.accumulators
    if segment.in_lanes:
        values = {a.name: f"{a.name}[lane]" for a in accumulators}
        for a in accumulators:
            code.writeline(f"{a.type} {a.name}[MB_LANES];")
        if accumulators:
            code.writeline("for (int lane = 0; lane < MB_LANES; lane++) {")
            first = {"first": "mb_index(MB_FIRST_LANE + lane)"}
            block(code, [f"{a.name}[lane] = {resolve(a.initial, first)};" for a in accumulators])
    else:
        values = {}
        code.writelines([f"{a.type} {a.name} = {a.initial};" for a in accumulators])
    if segment.scans:
        _rounds(kernel, code, segment, values)
    else:
        _loop_over_reduction(kernel, code, segment, resolve(segment.lines.getvalue(), values))
    for r in segment.reductions:
        if r.preamble is not None:
            code.writeline(r.preamble)
        for variable, value in r.results:
            text = value.format(*r.combine)
            code.writeline(f"const {kernel.variable_type(variable)} {variable} = {text};")
    code.splice(resolve(segment.after.getvalue(), {"once": "MB_ONCE "}))


def _loop_over_reduction(kernel: Any, code: IndentedBuffer, segment: Segment, lines: str) -> None:
    sums = [a for r in segment.reductions for a in r.accumulators if a.is_inexact and not segment.in_lanes]
    walk = Walk(kernel, tree_of(kernel, is_loop=True), segment.entries, longest=LONGEST_SUM if sums else None)
    numel, row = f"{walk.tree.prefix}numel", "q.row"
    before = simd(walk, segment.clauses(scalars=not segment.in_lanes))
    if segment.in_lanes:
        code.writeline(f"MB_LOOP_TILES(q, {numel}, {walk.length_text()}) {{")
        with code.indent():
            code.writelines(walk.row_lines(row))
            code.writelines([before, "MB_EACH_LANE(lane, q) {"])
            column = f"const mb_index {walk.column} = q.first + lane;"
            block(code, [column, *walk.column_lines(row)], lines)
        code.writeline("}")
    elif walk.row_length is None:
        code.writelines([before, f"MB_LOOP({walk.flat}, {numel}) {{"])
        block(code, walk.column_lines(row), lines)
    else:
        code.writeline(f"MB_LOOP_ROWS(q, {numel}, {walk.length_text()}) {{")
        with code.indent():
            code.writelines(walk.row_lines(row))
            # The row's own sums, under the names of the whole's.
            code.writelines([f"{a.type} {a.name}_whole = {a.name};" for a in sums])
            code.writelines([f"{a.name} = {a.initial};" for a in sums])
            code.writelines([before, f"MB_LOOP_COLUMNS({walk.column}, q) {{"])
            block(code, walk.column_lines(row), lines)
            code.writelines([f"{a.name} += {a.name}_whole;" for a in sums])
        code.writeline("}")


def _rounds(kernel: Any, code: IndentedBuffer, segment: Segment, values: dict[str, str]) -> None:
    """A loop with scans: in each round, stages over its lanes with the scans between them."""
    walk = Walk(kernel, tree_of(kernel, is_loop=True), segment.entries)
    stages = _stages(segment, values)
    carried = _carried(stages)
    for scan in segment.scans:
        code.writelines([f"{scan.struct} {scan.name}_carry{{}};", f"bool {scan.name}_started = false;"])
    code.writeline(f"MB_ROUNDS(q, {walk.tree.prefix}numel, {walk.length_text()}) {{")
    with code.indent():
        code.writelines(walk.row_lines("q.row"))
        code.writelines([f"{of} {name}_lanes[MB_LANES];" for name, of in carried.items()])
        code.writelines([f"{scan.struct}::many {scan.name}_lanes;" for scan in segment.scans])
        columns = [f"const mb_index {walk.column} = q.first + lane;", *walk.column_lines("q.row")]
        for number, stage in enumerate(stages):
            _over_lanes(walk, code, stage, columns, carried, "q")
            if number < len(segment.scans):
                scan = segment.scans[number]
                state = f"{scan.name}_lanes, q.count, {scan.name}_carry, {scan.name}_started"
                code.writeline(f"mb_scan<{scan.struct}>({state});")
    code.writeline("}")


def _stages(segment: Segment, values: dict[str, str]) -> list[Piece]:
    """The loop's lines, cut at its scans."""
    left = segment.lines.getvalue()
    clauses = segment.clauses(scalars=not segment.in_lanes)
    known: dict[str, str] = {}
    stages = []
    for scan in (*segment.scans, None):
        text = left
        if scan is not None:
            text, left = left.split(f"{scan.marker}\n", 1)
            text += scan.given()
        used = [known[name] for name in dict.fromkeys(USED.findall(text)) if name in known]
        stages.append(Piece(resolve("\n".join([*used, text]), values), clauses=clauses))
        known |= {} if scan is None else scan.result_lines()
    return stages


# -- lanes


@dataclass
class Piece:
    """One loop over the lanes of a tile: its text, and where it stands."""

    text: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    clauses: str = ""
    serial: list[str] | None = None  # lines of the loop over the reduction around it, if any
    sums: list[Accumulator] = field(default_factory=list)  # accumulators to which that loop adds in parts

    def defined(self) -> dict[str, str]:
        return {name: of for of, name in DEFINED.findall(self.text)}


def _lanes(kernel: Any, code: IndentedBuffer) -> None:
    walk = Walk(kernel, tree_of(kernel, is_loop=False), kernel.item_entries)
    pieces = [piece for segment in kernel.segments for piece in _pieces(kernel, segment)]
    carried = _carried(pieces)
    code.writeline(f"MB_TILES(p, {walk.tree.prefix}numel, {walk.length_text()}) {{")
    with code.indent():
        code.writelines(walk.row_lines("p.row"))
        for segment in kernel.segments:
            for a in (*segment.accumulators, *(carry for scan in segment.scans for carry in scan.carries)):
                code.writeline(f"{a.type} {a.name}[MB_TILE_LANES];")
        code.writelines([f"{of} {name}_lanes[MB_TILE_LANES];" for name, of in carried.items()])
        columns = [f"const mb_index {walk.column} = p.first + lane;", *walk.column_lines("p.row")]
        for piece in pieces:
            code.writelines(piece.before)
            if piece.serial is not None:
                _serial_loop(walk, code, piece, columns, carried)
            else:
                _over_lanes(walk, code, piece, columns, carried, "p")
            code.writelines(piece.after)
    code.writeline("}")


def _serial_loop(walk: Walk, code: IndentedBuffer, piece: Piece, columns: list[str], carried: dict[str, str]) -> None:
    tree = tree_of(walk.kernel, is_loop=True)
    in_parts = piece.sums and V.graph.sizevars.optimization_hint(tree.numel, fallback=1 << 20) > LONGEST_SERIAL_SUM
    span = f"0, {tree.prefix}numel"
    if in_parts:
        code.writeline(f"MB_PARTS(part, part_end, {tree.prefix}numel, {LONGEST_SERIAL_SUM}) {{")
        span = "part, part_end"
        code.writelines([f"{a.type} {a.name}_whole[MB_TILE_LANES];" for a in piece.sums])
        code.writelines(["MB_SIMD()", "MB_EACH_LANE(lane, p) {"])
        block(code, [f"{a.name}_whole[lane] = {a.name}[lane]; {a.name}[lane] = {a.initial};" for a in piece.sums])
    step = 1
    long = V.graph.sizevars.optimization_hint(tree.numel, fallback=UNROLLED) >= UNROLLED
    if long and not piece.before and piece.text.count("\n") < LONGEST_UNROLLED:
        step = UNROLLED
        _unrolled(walk, code, piece, columns, carried, span)
    code.writeline(f"MB_SERIAL({tree.name}, {span}, {step}) {{")
    with code.indent():
        code.writelines(piece.serial or [])
        _over_lanes(walk, code, piece, columns, carried, "p")
    code.writeline("}")
    if in_parts:
        code.writelines(["MB_SIMD()", "MB_EACH_LANE(lane, p) {"])
        block(code, [f"{a.name}[lane] += {a.name}_whole[lane];" for a in piece.sums])
        code.writeline("}")


def _unrolled(
    walk: Walk, code: IndentedBuffer, piece: Piece, columns: list[str], carried: dict[str, str], span: str
) -> None:
    """Some elements of the reduction at a time, so that what a lane accumulates stays in a register for them."""
    index = tree_of(walk.kernel, is_loop=True).name
    code.writeline(f"MB_SERIAL_BY({UNROLLED}, {index}_first, {span}) {{")
    with code.indent():
        code.writelines([simd(walk, piece.clauses), "MB_EACH_LANE(lane, p) {"])
        with code.indent():
            code.writelines([*columns, *_imports(piece, carried)])
            for number in range(UNROLLED):
                code.writeline("{")
                block(code, [f"const mb_index {index} = {index}_first + {number};"], piece.serial or [], piece.text)
        code.writeline("}")
    code.writeline("}")


def _over_lanes(
    walk: Walk, code: IndentedBuffer, piece: Piece, columns: list[str], carried: dict[str, str], tile: str
) -> None:
    exports = [f"{name}_lanes[lane] = {name};" for name in piece.defined() if name in carried and piece.serial is None]
    code.writelines([simd(walk, piece.clauses), f"MB_EACH_LANE(lane, {tile}) {{"])
    block(code, columns, _imports(piece, carried), piece.text, exports)


def _imports(piece: Piece, carried: dict[str, str]) -> list[str]:
    defined = piece.defined()
    used = [name for name in dict.fromkeys(USED.findall(piece.text)) if name not in defined]
    return [f"const {carried[name]} {name} = {name}_lanes[lane];" for name in used if name in carried]


def _pieces(kernel: Any, segment: Segment) -> list[Piece]:
    before = [f"mb_u64 {check.name} = 0;" for check in segment.checks]
    after = [f"mb_report_outside(mb_error, {check.name}, {check.size});" for check in segment.checks]
    clauses = segment.clauses(scalars=False)
    if not segment.is_loop:
        return [Piece(resolve(segment.lines.getvalue(), {"once": ""}), before, after, clauses)]
    accumulators = segment.accumulators
    lanes = {a.name: f"{a.name}[lane]" for a in accumulators}
    tree = tree_of(kernel, is_loop=True)
    lanes |= {scan.name: scan.in_lanes(str(tree.name)) for scan in segment.scans}
    pieces = []
    if accumulators or segment.scans:
        accumulators = [*accumulators, *(carry for scan in segment.scans for carry in scan.carries)]
        initial = [f"{a.name}[lane] = {resolve(a.initial, {'first': '0'})};" for a in accumulators]
        pieces.append(Piece("\n".join(initial)))
    serial = Walk(kernel, tree, segment.entries).flat_lines()
    sums = [a for a in accumulators if a.is_inexact]
    pieces.append(Piece(resolve(segment.lines.getvalue(), lanes), before, after, clauses, serial, sums))
    results = [
        f"const {kernel.variable_type(variable)} {variable} = "
        + value.format(*(f"{a.name}[lane]" for a in r.accumulators))
        + ";"
        for r in segment.reductions
        for variable, value in r.results
    ]
    stores = resolve(segment.after.getvalue(), {"once": ""})
    if results or stores:
        pieces.append(Piece("\n".join([*results, stores])))
    return pieces


def _carried(pieces: list[Piece]) -> dict[str, str]:
    """Variables of one loop over lanes that a later one uses, with their types."""
    known: dict[str, str] = {}
    carried: dict[str, str] = {}
    for piece in pieces:
        defined = piece.defined()
        for name in USED.findall(piece.text):
            if name not in defined and name in known:
                carried[name] = known[name]
        if piece.serial is None:
            known.update(defined)
    return carried
