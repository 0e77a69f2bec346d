"""csrc/aten/operators/*.yaml: how every operator is served. One file a family, entries sorted by name.

add.out: native                          a structured group is named by its out= variant and stands for all of them
abs.out: {stub: [abs_stub]}              upstream's shared ATen code; it ends in the stubs listed
view: stub                               the same, with no stub behind it
mm.out: library                          ours, over a library (libtorch's CPU operators, cuBLASLt, ...)
square: {decomposition: mul}             nothing is registered: a composite does it (the note says what it becomes)
histogram.bin_ct: {fallback: reason}     runs on the CPU, counted
cholesky: {stub: [...], until: "2.14"}   torch 2.14 and later have no such operator: the entry is for those before
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from codegen.schemas import Operator, Schemas

CATEGORIES = ("stub", "native", "library", "decomposition", "fallback")


class OperatorsError(Exception):
    """A mistake in an operators file; the text names the file and the operator."""


@dataclass(frozen=True)
class Entry:
    name: str
    family: str
    category: str
    stubs: tuple[str, ...]
    note: str
    operator: Operator

    @property
    def registers(self) -> bool:
        return self.category in ("stub", "native", "library")


def read_operators(files: Iterable[Path], schemas: Schemas) -> list[Entry]:
    """The entries of all files, each checked against the installed torch."""
    entries: dict[str, Entry] = {}
    for path in sorted(files):
        table = _load(path)
        if list(table) != sorted(table):
            unsorted = next(name for name, want in zip(table, sorted(table), strict=True) if name != want)
            raise OperatorsError(f"{path.name}: entries are sorted by name; the first out of place is '{unsorted}'")
        for name, value in table.items():
            if name in entries:
                raise OperatorsError(f"{path.name}: '{name}' is already listed in {entries[name].family}.yaml")
            if (entry := _entry(path, name, value, schemas)) is not None:
                entries[name] = entry
    return list(entries.values())


class _UniqueKeyLoader(yaml.SafeLoader):
    """yaml.SafeLoader keeps the last of two equal keys; a table of operators has none."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise OperatorsError(f"{self.name}: listed twice: {', '.join(sorted(map(str, twice)))}")
        return super().construct_mapping(node, deep)


def _load(path: Path) -> dict[str, Any]:
    with path.open() as stream:
        table = yaml.load(stream, Loader=_UniqueKeyLoader)
    return {str(name): value for name, value in (table or {}).items()}


def _entry(path: Path, name: str, value: object, schemas: Schemas) -> Entry | None:
    """What a line says; None where the installed torch no longer has the operator."""

    def fail(why: str) -> OperatorsError:
        return OperatorsError(f"{path.name}: '{name}' {why}")

    operator = schemas.operators.get(name)
    until = str(value.pop("until", "")) if isinstance(value, dict) else ""
    if operator is None:
        if until and _release(version("torch")) >= _release(until):
            return None
        if group := schemas.group_of.get(name):
            raise fail(f"is a member of the structured group '{group}': list '{group}', it stands for all of them")
        raise fail("is not an operator of the installed torch's native_functions.yaml")

    category, detail = _category(value, fail)
    stubs: tuple[str, ...] = ()
    note = ""
    if category == "stub":
        if not isinstance(detail, list) or not all(isinstance(stub, str) for stub in detail):
            raise fail("takes a list of stubs: {stub: [name_stub, ...]}")
        stubs = tuple(detail)
    elif isinstance(detail, str):
        note = detail
    elif detail:
        raise fail(f"takes a sentence as note: {{{category}: why}}")
    if why := does_not_apply(category, operator, schemas):
        raise fail(why)
    return Entry(name, path.stem, category, stubs, note, operator)


def _release(torch: str) -> tuple[int, ...]:
    return tuple(int(part) for part in torch.split(".")[:2])


def _category(value: object, fail: Any) -> tuple[str, object]:
    if isinstance(value, dict) and len(value) == 1:
        (category, detail), *_ = value.items()
    else:
        category, detail = value, []
    if category not in CATEGORIES:
        raise fail(f"has to be served by one of {', '.join(CATEGORIES)}; got '{value}'")
    return str(category), detail


def does_not_apply(category: str, operator: Operator, schemas: Schemas) -> str | None:
    """Why `category` cannot serve `operator`, or None."""
    if operator.function.manual_kernel_registration:
        return "is registered by hand in torch and cannot be served by a backend"
    if category == "decomposition":
        return None if schemas.is_composite(operator) else "has no composite implementation, so nothing decomposes it"
    composite = schemas.is_composite_implicit(operator)
    if composite and not schemas.has_cpu_kernel(operator) and not schemas.has_derivative(operator):
        # A backend kernel for such an operator silently replaces its derivative. (Where upstream has a formula, or a
        # CPU kernel beside the composite, as for silu_backward, nothing is lost.)
        return f"is CompositeImplicitAutograd: a kernel would cut autograd off; '{category}' does not apply"
    if category == "stub" and schemas.shared_kernel(operator) is None:
        return "has no implementation shared by CPU and CUDA, so 'stub' does not apply (use native or library)"
    if category == "fallback" and not schemas.has_cpu_kernel(operator):
        return "has no CPU kernel to fall back to"
    return None
