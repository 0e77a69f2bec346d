"""Accesses of 16 bytes on a GPU: a thread takes a chunk of neighbouring columns, and loads and stores it as one.

On the host the words for it (prelude/chunk.h) are the plain accesses, which the compiler vectorises by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from mybackend.compile.lines import replaced
from mybackend.compile.loops import Walk

__all__ = ["Access", "Chunks"]

# Bytes of one access, and the most elements of a chunk: what a thread holds takes registers.
BYTES = 16
LONGEST = 8
MOST_ACCESSES = 10
# With fewer items than this, an element a thread keeps more of a GPU busy.
FEWEST_ITEMS = 1 << 14


@dataclass(frozen=True)
class Access:
    """A load or store that every item executes, whatever it is: no mask, and no index that was itself loaded."""

    pointer: str
    index: sympy.Expr
    stored: str  # C++ type
    size: int  # bytes


class Chunks:
    """The accesses of a kernel to neighbours: by the text of the element, the name of the chunk that holds it."""

    def __init__(self, kernel: Any, walk: Walk) -> None:
        self.walk = walk
        self.loads = self._neighbours(kernel.plain_loads)
        text = "\n".join(segment.lines.getvalue() for segment in kernel.segments)
        stores = {element: access for element, access in kernel.plain_stores.items() if f"{element} = " in text}
        self.stores = self._neighbours(stores)  # without those that fusion has made superfluous
        accesses = [*self.loads.values(), *self.stores.values()]
        self.length = min(LONGEST, BYTES // min((a.size for a in accesses), default=BYTES))
        items, row = walk.tree.numel, walk.row_numel()
        whole = isinstance(items, (int, sympy.Integer)) and isinstance(row, (int, sympy.Integer))
        if not whole or row % self.length or items < FEWEST_ITEMS or len(accesses) > MOST_ACCESSES or self.length < 2:
            self.loads, self.stores = {}, {}
        self.names = {text: f"chunk{n}" for n, text in enumerate([*self.loads, *self.stores])}

    def __bool__(self) -> bool:
        return bool(self.names)

    def _neighbours(self, accesses: dict[str, Access]) -> dict[str, Access]:
        return {text: access for text, access in accesses.items() if self.walk.steps_by_one(access.index)}

    def held(self, text: str) -> str:
        """The lines of a loop with chunks in the place of what they hold."""
        for element in self.stores:
            text = replaced(text, f"{element} = ", f"MB_OUT({self.names[element]}, {element}) = ")
        for element in self.loads:
            text = replaced(text, element, f"MB_IN({self.names[element]}, {element})")
        return text

    def declarations(self) -> list[str]:
        accesses = {**self.loads, **self.stores}
        return [f"MB_CHUNK({accesses[e].stored}, {self.length}, {name});" for e, name in self.names.items()]

    def reads(self) -> list[str]:
        return [f"MB_READ_CHUNK({self.names[element]}, {element});" for element in self.loads]

    def writes(self) -> list[str]:
        return [f"MB_WRITE_CHUNK({self.names[element]}, {element});" for element in self.stores]
