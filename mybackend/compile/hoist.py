"""Moves what is the same in a whole row out of the loop over its columns.

A compiler does this for plain loads and arithmetic, but not for the check of an index, which updates a variable: and an
index is most often the same in a row, that of an embedding. Nor does it where the loop writes through pointers that may
be the same: and an optimizer takes powers of its step, which is the same for all of a parameter.
"""

from __future__ import annotations

import re

from mybackend.compile.segments import BoundsCheck

__all__ = ["hoist"]

DEFINITION = re.compile(r"^const \w+ (\w+) = (.*);$")
NAME = re.compile(r"[A-Za-z_]\w*")


def hoist(
    lines: list[str], column_names: set[str], checks: list[BoundsCheck], written: set[str]
) -> tuple[list[str], list[str], list[BoundsCheck]]:
    """Splits the lines of a loop body into those for the row and those for each column.

    `column_names` are the variables that change from column to column; `written` are the pointers through which the
    loop writes, from which nothing is loaded early. Returns also the checks that are left in the loop.
    """
    names = {check.name for check in checks}
    changing = set(column_names)
    row: list[str] = []
    column: list[str] = []
    in_loop: set[str] = set()
    depth = 0
    for line in lines:
        found = DEFINITION.match(line)
        used = set(NAME.findall(line if found is None else found.group(2)))
        constant = depth == 0 and not used & (changing | written)
        if (
            found is not None
            and constant
            or found is None
            and constant
            and (updated := used & names)
            and line.startswith(tuple(updated))
        ):
            row.append(line)
        else:
            column.append(line)
            in_loop |= set(NAME.findall(line)) & names
            if found is not None:
                changing.add(found.group(1))
            elif defined := re.match(r"^\w+ (\w+) =", line):
                changing.add(defined.group(1))
        depth += line.count("{") - line.count("}")
    return row, column, [check for check in checks if check.name in in_loop]
