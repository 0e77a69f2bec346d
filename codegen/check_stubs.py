"""Fails when an operator of category `stub` names a DispatchStub that nothing in libmybackend.so fills.

A filled stub is an undefined symbol `at::native::<stub>` of the library: its registration takes the stub's address.
Without this check the first call of the operator would end in "DispatchStub: missing kernel".
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def filled_stubs(library: Path) -> set[str]:
    symbols = subprocess.run(["nm", "-D", "-C", "-u", str(library)], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"at::native::(\w+)$", symbols, flags=re.MULTILINE))


def missing(table: str, filled: set[str]) -> list[tuple[str, str]]:
    pairs = [tuple(line.split()) for line in table.splitlines()]
    return [(operator, stub) for operator, stub in pairs if stub not in filled]


def main(library: str, table: str, stamp: str) -> int:
    problems = missing(Path(table).read_text(), filled_stubs(Path(library)))
    for operator, stub in problems:
        print(
            f"mybackend: operator '{operator}' is served by {stub}, which no file of csrc/aten fills: "
            f"REGISTER_PRIVATEUSE1_DISPATCH({stub}, ...) is missing",
            file=sys.stderr,
        )
    if not problems:
        Path(stamp).touch()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
