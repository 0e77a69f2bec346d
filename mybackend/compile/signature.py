"""A kernel's parameters: its C++ signature, the entry of the host build, and what the launcher must know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from torch._inductor.codegen.common import SizeArg, TensorArg, WorkspaceArg
from torch._inductor.codegen.triton_utils import should_unwrap_unspec_arg
from torch._inductor.virtualized import V as virtualized

from mybackend.compile.c_types import stored_type
from mybackend.compile.emit import Form

__all__ = ["ERROR_RECORD", "LaunchPlan", "Parameter", "Signature", "call_arguments", "host_entry", "special_functions"]

V: Any = virtualized

# What load_kernels(...).kernel is given after the name; the fields of runtime::LaunchPlan say what each is.
LaunchPlan = tuple[str, list[int], list[int], int, int, bool, list[str]]

# Bytes that go from one core to another at a time.
LINE = 64

# A vector of floats: with fewer lanes a thread takes as long.
FEWEST_LANES = 16


@dataclass(frozen=True)
class Parameter:
    """`kind` is the launcher's: 'p' a tensor's memory, 'i' an integer, 'd' a floating-point number."""

    type: str
    name: str
    kind: str

    def from_slot(self, position: int) -> str:
        if self.kind == "p":
            return f"static_cast<{self.type.replace(' __restrict__', '')}>(slots[{position}].pointer)"
        return f"slots[{position}].{'integer' if self.kind == 'i' else 'real'}"


ERROR_RECORD = Parameter("mb_errors*", "mb_error", "p")


def special_functions(*kernels: Any) -> str:
    """The header that kernels with special functions need."""
    return '#include "special.h"\n' if any(kernel.uses_special_functions for kernel in kernels) else ""


def host_entry(name: str, parameters: list[Parameter], *kernels: Any) -> str:
    """What the host driver calls for the items [begin, end) of a launch."""
    passed = ", ".join(p.from_slot(i) for i, p in enumerate(parameters))
    attribute = "MB_TESTS_CHOICES " if any(kernel.tests_choices for kernel in kernels) else ""
    lines = [
        "#if !MB_GPU",
        f"MB_HOST_ENTRY {attribute}{name}_run(const mb_slot* slots, mb_i64 begin, mb_i64 end) {{",
        f"  {name}(begin, end, {passed});",
        "}",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


def _is_static(size: Any) -> bool:
    return isinstance(size, (int, sympy.Integer))


class Signature:
    """`open_extents`: sizes that are known are parameters too, so that one function serves ranges of any size."""

    def __init__(self, kernel: Any, open_extents: bool = False) -> None:
        self.kernel = kernel
        self.parameters = [*_arguments(kernel)]
        self.extents = kernel.extents()
        self.passed = [tree for tree in self.extents if open_extents or not _is_static(tree.numel)]
        self.parameters += [Parameter("mb_i64", f"{tree.prefix}extent", "i") for tree in self.passed]

    def listed(self) -> list[Parameter]:
        """All parameters: those of the call, with the error record before and the numbers of messages after them."""
        messages = [Parameter("mb_i64", f"message{i}", "i") for i in range(len(self.kernel.messages))]
        return [ERROR_RECORD, *self.parameters, *messages]

    def source(self, name: str, body: str) -> str:
        includes = special_functions(self.kernel)
        return (
            includes + self.function("MB_KERNEL", name, "MB_SPAN", body) + host_entry(name, self.listed(), self.kernel)
        )

    def function(self, kind: str, name: str, span: str, body: str) -> str:
        """The definition of the function with this body; `kind` and `span` are macros of prelude/platform.h."""
        listed = ", ".join(f"{p.type} {p.name}" for p in self.listed())
        index = "int" if self.kernel.index_dtype == "int" else "mb_i64"
        lines = [f"{kind} {name}({span} {listed}) {{", f"  typedef {index} mb_index;"]
        passed = {tree.prefix for tree in self.passed}
        for tree in self.extents:
            extent = f"mb_index({tree.prefix}extent)" if tree.prefix in passed else str(int(tree.numel))
            qualifier = "const" if tree.prefix in passed else "constexpr"
            lines.append(f"  {qualifier} mb_index {tree.prefix}numel = {extent};")
        if self.kernel.adds:
            items = " * ".join(f"{tree.prefix}numel" for tree in self.extents if not tree.is_reduction)
            lines.append(f"  MB_ALONE({items});")
        lines += [f"  {line}" for line in body.splitlines()]
        return "\n".join([*lines, "}"]) + "\n"

    def unit(self) -> int:
        """Items that one thread of the host should have together.

        Lanes are columns of memory: of each row that is written, a line at least, or threads take it from one another.
        """
        if self.kernel.form != Form.LANES:
            return 1
        lanes = sympy.prod([tree.numel for tree in self.extents if not tree.is_reduction])
        written = [
            argument
            for argument in self.kernel.args.python_argdefs()[2]
            if isinstance(argument, TensorArg) and not argument.name.startswith("in_ptr")
        ]
        rows = [a for a in written if not V.graph.sizevars.statically_known_equals(V.graph.get_numel(a.buffer), lanes)]
        return max((LINE // a.dtype.itemsize for a in rows), default=FEWEST_LANES)

    def launch_plan(self) -> LaunchPlan:
        kernel = self.kernel
        positions = {p.name: i for i, p in enumerate(self.parameters)}

        def product(is_reduction: bool) -> list[int]:
            return [
                int(tree.numel) if _is_static(tree.numel) else -1 - positions[f"{tree.prefix}extent"]
                for tree in self.extents
                if tree.is_reduction == is_reduction
            ]

        kinds = "".join(p.kind for p in self.parameters)
        items, work = product(False), product(True)
        return kinds, items, work, int(kernel.form), self.unit(), kernel.can_fail, kernel.messages


def _arguments(kernel: Any) -> list[Parameter]:
    """What Inductor passes. Memory that is written is not `restrict` where another argument may be the same memory."""
    definitions, _, arguments, _ = kernel.args.python_argdefs()
    parameters = []
    for definition, argument in zip(definitions, arguments, strict=True):
        name = definition.name
        if isinstance(argument, TensorArg):
            if should_unwrap_unspec_arg(argument.buffer):
                floating = argument.dtype.is_floating_point
                parameters.append(Parameter("double" if floating else "mb_i64", name, "d" if floating else "i"))
                continue
            alone = not kernel.mutations and not name.startswith("in_out")
            const = "const " if name.startswith("in_ptr") else ""
            parameters.append(Parameter(f"{const}{stored_type(argument.dtype)}*{' __restrict__' * alone}", name, "p"))
        elif isinstance(argument, WorkspaceArg):
            parameters.append(Parameter("unsigned char*", name, "p"))
        elif isinstance(argument, SizeArg):
            integer = getattr(argument.expr, "is_integer", True)
            parameters.append(Parameter("mb_i64" if integer else "double", name, "i" if integer else "d"))
        else:
            raise NotImplementedError(f"mybackend.compile: an argument of kind {type(argument).__name__}")
    return parameters


def call_arguments(kernel: Any, name: str) -> tuple[list[Any], list[Any]]:
    """The arguments of a call in the order of the parameters, and their types."""
    _, arguments, _, types = kernel.args.python_argdefs()
    arguments, types = list(arguments), list(types)
    for tree in kernel.extents():
        if _is_static(tree.numel):
            continue
        symbolic = isinstance(tree.numel, sympy.Symbol)
        arguments.append(tree.numel if symbolic else V.graph.wrapper_code.generate_numel_expr(name, tree))
        types.append(type(tree.numel))
    return arguments, types
