"""Many kernels as the segments of one launch: what `_foreach_` operators, and `combo_kernels`, ask for.

A compiled optimizer is such a launch: the same few lines for each parameter. Each kernel becomes a function that gets
its part of the launch's items; functions of the same text are written once, so that a hundred parameters compile as
fast as one. Items of the segments follow one another. A block of GPU threads belongs to one segment, so a segment
begins at a multiple of the items that a block has; which one it is, is found by halving.

A launch takes at most ARGUMENTS arguments and segments of one form, since the form says what a GPU block is. What does
not fit is a further launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
from torch._inductor.virtualized import V as virtualized
from torch.utils._sympy.functions import FloorDiv

from mybackend.compile.emit import Form
from mybackend.compile.signature import (
    ERROR_RECORD,
    LaunchPlan,
    Parameter,
    Signature,
    host_entry,
    special_functions,
)

__all__ = ["Combo", "in_launches"]

V: Any = virtualized

# Parameters of a GPU kernel may take 4096 bytes; some are left for those that are not arguments of a segment.
ARGUMENTS = 480

# Items of a segment are padded to a multiple of this, itself a multiple of the threads of a block
# (csrc/runtime/cuda_module.cpp). A block of the rows form has one item.
BLOCK_ITEMS = 256


class Segment:
    """One kernel of a launch, as a function and a call of it."""

    def __init__(self, kernel: Any, body: str) -> None:
        self.kernel = kernel
        # A pointwise function serves any size; the length of a reduction is better known to the C++ compiler.
        self.signature = Signature(kernel, open_extents=kernel.form == Form.ELEMENTS)
        self.body = body

    def definition(self, name: str) -> str:
        return self.signature.function("MB_SEGMENT", name, "MB_SEGMENT_SPAN", self.body)

    def arguments(self) -> list[tuple[Parameter, Any]]:
        """Parameters, each with what is passed for it: a buffer's name or an expression of sizes."""
        _, passed, _, _ = self.kernel.args.python_argdefs()
        values = [*passed, *(tree.numel for tree in self.signature.passed)]
        return list(zip(self.signature.parameters, values, strict=True))

    def items(self) -> sympy.Expr:
        return sympy.prod([tree.numel for tree in self.signature.extents if not tree.is_reduction])

    def padded_items(self) -> sympy.Expr:
        if self.kernel.form == Form.ROWS:
            return self.items()
        return FloorDiv(self.items() + (BLOCK_ITEMS - 1), BLOCK_ITEMS) * BLOCK_ITEMS

    def work(self) -> int:
        lengths = [tree.numel for tree in self.signature.extents if tree.is_reduction]
        return int(V.graph.sizevars.optimization_hint(sympy.prod(lengths), fallback=1024))


def in_launches(segments: Iterable[Segment]) -> list[list[Segment]]:
    """The segments in groups that fit into one launch each, in the order in which their forms appear."""
    launches: list[list[Segment]] = []
    open_launch: dict[Form, tuple[list[Segment], set[Any]]] = {}
    for segment in segments:
        form = segment.kernel.form
        arguments = {_key(*argument) for argument in segment.arguments()}
        group, taken = open_launch.get(form, ([], set()))
        if not group or len(taken | arguments) > ARGUMENTS:
            group, taken = [], set()
            launches.append(group)
        group.append(segment)
        open_launch[form] = group, taken | arguments
    return launches


def _key(parameter: Parameter, value: Any) -> tuple[str, str]:
    """An argument of the same type and value is passed once: memory that is read and written, a step that all share."""
    return parameter.type.replace(" __restrict__", "").removeprefix("const "), str(value)


class Combo:
    """The kernel of one launch of several segments; stands for a Kernel where one is defined and called."""

    def __init__(self, segments: list[Segment]) -> None:
        self.segments = segments
        self.signature = self  # what define_kernel asks for the launch plan
        self.form = segments[0].kernel.form
        self.messages: list[str] = []
        self.parameters: list[Parameter] = []
        self.values: list[Any] = []
        self._names: dict[tuple[str, str], str] = {}

    def _passed(self, parameter: Parameter, value: Any) -> str:
        """The expression for an argument of a segment: a constant, or the name of the launch's argument."""
        if isinstance(value, (int, sympy.Integer)):
            return str(int(value))
        key = _key(parameter, value)
        if key not in self._names:
            self._names[key] = f"arg{len(self.parameters)}"
            self.parameters.append(Parameter(key[0], self._names[key], parameter.kind))
            self.values.append(value)
        return self._names[key]

    def _extent(self, expr: sympy.Expr) -> str:
        return self._passed(Parameter("mb_i64", "", "i"), V.graph.sizevars.simplify(expr))

    def source(self) -> str:
        """The functions and the kernel, named KERNEL_NAME."""
        functions: dict[str, str] = {}
        calls, ends = [], []
        first = "0"
        for number, segment in enumerate(self.segments):
            text = segment.definition("FUNCTION_NAME")
            function = functions.setdefault(text, f"KERNEL_NAME_{len(functions)}")
            passed = ["mb_error", *(self._passed(*argument) for argument in segment.arguments())]
            for message in segment.kernel.messages:
                passed.append(f"message{len(self.messages)}")
                self.messages.append(message)
            items = self._extent(segment.items())
            padded = f"({items} + {BLOCK_ITEMS - 1}) / {BLOCK_ITEMS} * {BLOCK_ITEMS}"
            padded = items if self.form == Form.ROWS else padded
            calls.append(f"{function}(MB_ITEMS_OF({first}, {items}) {', '.join(passed)});")
            first = f"end{number}"
            before = f"end{number - 1} + " if number else ""
            ends.append(f"const mb_i64 {first} = {before}{padded};")
        self._extent(self.total())
        listed = [ERROR_RECORD, *self.parameters]
        listed += [Parameter("mb_i64", f"message{i}", "i") for i in range(len(self.messages))]
        lines = [
            f"MB_KERNEL KERNEL_NAME(MB_SPAN {', '.join(f'{p.type} {p.name}' for p in listed)}) {{",
            f"  {'MB_BLOCK_OF_ONE' if self.form == Form.ROWS else 'MB_BLOCK_OF_THREADS'}",
            *(f"  {line}" for line in ends),
            *_halved(calls, 0, len(calls), "  "),
            "}",
        ]
        definitions = [text.replace("FUNCTION_NAME", name) for text, name in functions.items()]
        kernels = [segment.kernel for segment in self.segments]
        entry = host_entry("KERNEL_NAME", listed, *kernels)
        return special_functions(*kernels) + "".join(definitions) + "\n".join(lines) + "\n" + entry

    def total(self) -> sympy.Expr:
        return sum((segment.padded_items() for segment in self.segments), sympy.S.Zero)

    def launch_plan(self) -> LaunchPlan:
        """As Signature.launch_plan, after source()."""
        total = V.graph.sizevars.simplify(self.total())
        items = int(total) if total.is_Integer else -1 - self.values.index(total)
        can_fail = any(segment.kernel.can_fail for segment in self.segments)
        kinds = "".join(p.kind for p in self.parameters)
        work, unit = max(s.work() for s in self.segments), max(s.signature.unit() for s in self.segments)
        return kinds, [items], [work], int(self.form), unit, can_fail, self.messages

    def call_kernel(self, name: str) -> None:
        types = [torch_type(value) for value in self.values]
        device = V.graph.get_current_device_or_throw()
        V.graph.wrapper_code.generate_kernel_call(name, self.values, triton=False, arg_types=types, device=device)


def torch_type(value: Any) -> Any:
    return V.graph.get_dtype(value) if isinstance(value, str) else type(value)


def _halved(calls: list[str], first: int, last: int, indent: str) -> list[str]:
    """Calls of the segments [first, last): the first half if the span begins there, the second if it ends there."""
    if last - first == 1:
        return [indent + calls[first]]
    middle = (first + last) // 2
    return [
        f"{indent}if (mb_begin < end{middle - 1}) {{",
        *_halved(calls, first, middle, indent + "  "),
        f"{indent}}}",
        f"{indent}if (mb_end > end{middle - 1}) {{",
        *_halved(calls, middle, last, indent + "  "),
        f"{indent}}}",
    ]
