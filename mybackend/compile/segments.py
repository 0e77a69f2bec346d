"""A kernel's body in pieces: what runs once for each item, and loops over a reduction, in the order they run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch._inductor.codegen.common import IndentedBuffer

from mybackend.compile.reductions import Accumulator, Reduction
from mybackend.compile.scans import Scan

__all__ = ["BoundsCheck", "Segment"]


@dataclass(frozen=True)
class BoundsCheck:
    """The variable that remembers an index outside [0, size)."""

    name: str
    size: str


@dataclass
class Segment:
    is_loop: bool
    lines: IndentedBuffer
    # Index variables of the reduction that the lines use.
    entries: list[Any] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    checks: list[BoundsCheck] = field(default_factory=list)
    # Stores of results, after the loop.
    after: IndentedBuffer = field(default_factory=IndentedBuffer)
    # In the order of their markers in `lines`.
    scans: list[Scan] = field(default_factory=list)

    @property
    def in_lanes(self) -> bool:
        return any(r.in_lanes for r in self.reductions)

    @property
    def accumulators(self) -> list[Accumulator]:
        return [a for r in self.reductions for a in r.accumulators]

    def __bool__(self) -> bool:
        return bool(self.lines) or bool(self.after) or bool(self.reductions)

    def clauses(self, scalars: bool) -> str:
        """What `omp simd` must know of the loop; accumulators only where they are scalars."""
        clauses = [f"reduction(max : {check.name})" for check in self.checks]
        if scalars:
            clauses += [f"reduction({a.operator} : {a.name})" for r in self.reductions for a in r.accumulators]
        return " ".join(clauses)
