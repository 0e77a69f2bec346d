"""How a flat range of a kernel is walked: in rows of columns, so that the inner loop is over neighbours in memory.

Inductor describes every index variable of a range as `(flat // divisor) % length`. On a CPU such divisions would keep a
loop from vectorising. So the range is cut into rows of `row_length` elements: variables that are constant in a row are
computed once for it, the innermost variable is the loop's own counter, and few divisions are left. A GPU thread has one
element and computes them all; the text is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
from torch._inductor.virtualized import V as virtualized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch._inductor.codegen.simd import IterationRangesEntry, IterationRangesRoot

__all__ = ["LONGEST_SUM", "Walk"]

V: Any = virtualized

# Sums of floating-point numbers go in parts of at most this many terms, whose totals are added: the error grows with
# the number of parts, not of terms.
LONGEST_SUM = 4096

# A row shorter than this does not fill a vector: then divisions inside the loop are the lesser evil.
SHORTEST_ROW = 16


class Walk:
    """The walk over one range for the index variables `entries`."""

    def __init__(
        self,
        kernel: Any,
        tree: IterationRangesRoot,
        entries: Iterable[IterationRangesEntry],
        longest: int | None = None,
    ) -> None:
        """`longest`: rows of more elements are cut."""
        self.kernel = kernel
        self.tree = tree
        self.entries = list(entries)
        self.row_length = self._row_length()
        if longest is not None and self._is_longer_than(longest):
            self.row_length = sympy.Integer(longest)

    def _is_longer_than(self, length: int) -> bool:
        return bool(V.graph.sizevars.optimization_hint(self.row_numel(), fallback=2 * length) > length)

    @property
    def flat(self) -> str:
        """Name of the variable that counts the whole range."""
        return str(self.tree.name)

    @property
    def column(self) -> str:
        """Name of the inner loop's counter."""
        return self.flat if self.row_length is None else f"{self.tree.prefix}column"

    def length_text(self) -> str:
        return f"{self.tree.prefix}numel" if self.row_length is None else self._text(self.row_length)

    def row_numel(self) -> sympy.Expr:
        return self.tree.numel if self.row_length is None else self.row_length

    def lies_across(self, index: sympy.Expr) -> bool:
        """Whether the next row is next in memory, and the next column is not: a transposition."""
        if self.row_length is None:
            return False
        along_rows = [e for e in self.entries if self.is_row(e) and self._is_next_row(e)]
        columns = [e for e in self.entries if not self.is_row(e) and e.divisor == 1]
        return any(self._step(index, row) == 1 for row in along_rows) and any(
            self._step(index, column) not in (0, 1) for column in columns
        )

    def steps_by_one(self, index: sympy.Expr) -> bool:
        """Whether the columns of a row are neighbours in memory, all of them."""
        columns = [e for e in self.entries if not self.is_row(e) and e.symbol() in index.free_symbols]
        if len(columns) != 1 or columns[0].divisor != 1 or self._step(index, columns[0]) != 1:
            return False
        return bool(V.graph.sizevars.statically_known_multiple_of(columns[0].length, self.row_numel()))

    def in_runs(self, index: sympy.Expr, first: str, last: str) -> list[str] | None:
        """C++ conditions for rows `first` to `last` of a column to be neighbours in memory, where `index` lies across.

        None if that cannot be told from the variables of rows.
        """
        conditions = []
        for e in self.entries:
            if e.symbol() not in index.free_symbols:
                continue
            if not self.is_row(e):
                if not V.graph.sizevars.statically_known_multiple_of(self.row_length, e.divisor * e.length):
                    return None
                continue
            step = f"({self._in_row(e, last)}) - ({self._in_row(e, first)})"
            wanted = f"{last} - {first}" if self._is_next_row(e) else "0"
            if step != f"({last}) - ({first})" or wanted == "0":
                conditions.append(f"{step} == {wanted}")
        return conditions

    def _is_next_row(self, e: IterationRangesEntry) -> bool:
        sizevars = V.graph.sizevars
        long_enough = sizevars.optimization_hint(e.length, fallback=SHORTEST_ROW) >= SHORTEST_ROW // 2
        return long_enough and bool(sizevars.statically_known_equals(e.divisor, self.row_length))

    def _step(self, index: sympy.Expr, e: IterationRangesEntry) -> sympy.Expr:
        symbol = e.symbol()
        return sympy.expand(index.subs(symbol, symbol + 1) - index) if symbol in index.free_symbols else sympy.S.Zero

    def row_lines(self, row: str) -> list[str]:
        """Definitions of the variables that are constant in a row, whose number is the C++ expression `row`."""
        if self.row_length is None:
            return []
        return [self._definition(e, self._in_row(e, row)) for e in self.entries if self.is_row(e)]

    def column_lines(self, row: str) -> list[str]:
        """Definitions of the others, in the loop over columns."""
        if self.row_length is None:
            return [self._definition(e, self._text(e.expr)) for e in self.entries]
        lines = [f"const mb_index {self.flat} = {row} * {self.length_text()} + {self.column};"]
        return lines + [self._definition(e, self._in_column(e, row)) for e in self.entries if not self.is_row(e)]

    def flat_lines(self) -> list[str]:
        """Definitions of all variables from the flat counter: for loops that are not vectorised."""
        return [self._definition(e, self._text(e.expr)) for e in self.entries]

    def _row_length(self) -> sympy.Expr | None:
        """The shortest period of an index variable that is long enough; None: the range is one row."""
        sizevars = V.graph.sizevars
        periods: set[sympy.Expr] = set()
        for e in self.entries:
            periods.update((e.divisor, e.divisor * e.length))
        periods = {p for p in periods if not sizevars.statically_known_equals(p, self.tree.numel)}
        long_enough = [p for p in periods if sizevars.optimization_hint(p, fallback=64) >= SHORTEST_ROW]
        return min(long_enough, key=lambda p: (sizevars.optimization_hint(p, fallback=64), str(p)), default=None)

    def is_row(self, e: IterationRangesEntry) -> bool:
        if self.row_length is None:
            return False
        return bool(V.graph.sizevars.statically_known_multiple_of(e.divisor, self.row_length))

    def _in_row(self, e: IterationRangesEntry, row: str) -> str:
        """(row / (divisor / row_length)) % length"""
        sizevars = V.graph.sizevars
        divisor = sizevars.simplify(e.divisor / self.row_length)
        text = row if sizevars.statically_known_equals(divisor, 1) else f"{row} / {self._text(divisor)}"
        if sizevars.statically_known_equals(e.divisor * e.length, self.tree.numel):
            return text
        return f"({text}) % {self._text(e.length)}"

    def _in_column(self, e: IterationRangesEntry, row: str) -> str:
        sizevars = V.graph.sizevars
        if sizevars.statically_known_multiple_of(self.row_length, e.divisor * e.length):
            text = self.column
            if not sizevars.statically_known_equals(e.divisor, 1):
                text = f"{text} / {self._text(e.divisor)}"
            if sizevars.statically_known_equals(e.divisor * e.length, self.row_length):
                return text
            return f"({text}) % {self._text(e.length)}"
        if e.divisor == 1 and sizevars.statically_known_multiple_of(e.length, self.row_length):
            # Whole rows: the number of the row in its period is the same for all columns.
            period = self._text(sizevars.simplify(e.length / self.row_length))
            return f"({row} % {period}) * {self.length_text()} + {self.column}"
        return self._text(e.expr)

    def _text(self, e: sympy.Expr) -> str:
        text = self.kernel.index_to_str(e)
        return text if text.isidentifier() or text.isdigit() else f"({text})"

    def _definition(self, e: IterationRangesEntry, text: str) -> str:
        return f"const mb_index {e.name} = {text};"
