"""`python -m mybackend coverage`: how every operator of ATen is served, checked against the dispatcher.

The tables (csrc/aten/operators/*.yaml, packed into _operators.json by the build) say how; the dispatcher says what is
registered. Where the two differ the report says so and the exit status is 1: it cannot claim what is not there.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import torch

REGISTERED = ("stub", "native", "library")
MEANING = {
    "stub": "upstream's ATen code over our kernels",
    "native": "our implementation",
    "library": "our implementation over a library",
    "decomposition": "composed of other operators",
    "fallback": "runs on the CPU, by decision",
    "unlisted": "runs on the CPU, or is refused (views, factories, random numbers)",
}


@dataclass
class Coverage:
    served: dict[str, str] = field(default_factory=dict)  # overload -> key of MEANING
    family: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def has_kernel(overload: str, key: str = "PrivateUse1") -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{overload}", key)


@functools.cache
def _table() -> dict[str, str]:
    """Overload -> how the tables say it is served."""
    table = json.loads((Path(__file__).parent / "_operators.json").read_text())
    return {overload: entry["served"] for entry in table.values() for overload in entry["overloads"]}


def served_by(overload: str) -> str:
    """How an ATen overload ("add.Tensor") is served: a key of MEANING."""
    if overload in _table():
        return _table()[overload]
    keys = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    return "decomposition" if any(has_kernel(overload, key) for key in keys) else "unlisted"


def measure() -> Coverage:
    """Compares the tables with the dispatcher; the work list is what has a CPU kernel."""
    result = Coverage()
    table = json.loads((Path(__file__).parent / "_operators.json").read_text())
    for name, entry in table.items():
        for overload in entry["overloads"]:
            result.served[overload] = entry["served"]
            result.family[overload] = entry["family"]
            result.notes[overload] = entry["note"]
            if (entry["served"] in REGISTERED) != has_kernel(overload):
                state = "has no kernel" if entry["served"] in REGISTERED else "has a kernel"
                result.problems.append(
                    f"{entry['family']}.yaml lists {name} as {entry['served']}, but {overload} {state}"
                )
    for full_name in torch._C._dispatch_get_all_op_names():
        namespace, _, overload = full_name.partition("::")
        if namespace != "aten" or overload in result.served:
            continue
        if has_kernel(overload):
            result.problems.append(f"{overload} has a kernel, but no table lists it")
        elif has_kernel(overload, "CPU"):
            result.served[overload] = "unlisted"
    return result


def report(coverage: Coverage) -> str:
    counts = Counter(coverage.served.values())
    lines = [
        "# Operators",
        "",
        "Written by `python -m mybackend coverage --write docs/support.md` from the operator tables and the dispatcher",
        f"of torch {torch.__version__.partition('+')[0]}. Everything not listed here is a composite of what is.",
        "",
        "| served by | overloads | meaning |",
        "|---|---|---|",
        *(f"| {served} | {counts[served]} | {meaning} |" for served, meaning in MEANING.items()),
        f"| all | {counts.total()} | |",
        "",
    ]
    for family in sorted(set(coverage.family.values())):
        lines += [f"## {family}", ""]
        for served in MEANING:
            names = sorted(n for n, f in coverage.family.items() if f == family and coverage.served[n] == served)
            if names:
                noted = [f"`{n}`" + (f" ({coverage.notes[n]})" if coverage.notes[n] else "") for n in names]
                lines += [f"{served}: {', '.join(noted)}", ""]
    unlisted = sorted(name for name, served in coverage.served.items() if served == "unlisted")
    lines += ["## unlisted", "", ", ".join(f"`{name}`" for name in unlisted), ""]
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m mybackend coverage", description="how every operator is served")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report there (default: print a summary)")
    options = parser.parse_args(arguments)
    coverage = measure()
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(report(coverage))
        print(f"wrote {options.write}")
    counts = Counter(coverage.served.values())
    for served, meaning in MEANING.items():
        print(f"{served:14} {counts[served]:5}  {meaning}")
    for problem in coverage.problems:
        print(f"problem: {problem}")
    return 1 if coverage.problems else 0
