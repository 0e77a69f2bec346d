"""The kernel of a template: its text with the names it may use before it, and with what is fused in store_row().

What follows the template in Inductor's graph is written over (row, column) of the result, a row being one of its last
dimension. On the host store_row() is a loop over columns that vectorises; a GPU's thread calls it with its element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import sympy
import torch
from torch._inductor import ir
from torch._inductor.codegen.common import IndentedBuffer
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.utils import sympy_product
from torch._inductor.virtualized import V as virtualized
from torch._inductor.virtualized import ops

import mybackend
from mybackend.compile.c_types import STORED, c_constant, c_type, compute_dtype
from mybackend.compile.emit import Form
from mybackend.compile.hoist import hoist
from mybackend.compile.kernel import Kernel
from mybackend.compile.loops import Walk
from mybackend.compile.signature import LaunchPlan, Parameter, Signature, call_arguments
from mybackend.compile.template import Parameters, Sizes, Template

__all__ = ["TemplateCall", "TemplateKernel"]

V: Any = virtualized


@dataclass(frozen=True)
class TemplateCall:
    """A template with one set of parameters, applied to arguments."""

    template: Template
    parameters: Parameters
    arguments: dict[str, Any]  # by name: a realized node of Inductor's, or a Python number
    layout: ir.Layout  # of the result

    def tensors(self) -> dict[str, Any]:
        return {name: value for name, value in self.arguments.items() if isinstance(value, ir.IRNode)}

    def sizes(self) -> Sizes:
        sizes = {name: tuple(_plain(size) for size in node.get_size()) for name, node in self.tensors().items()}
        return {**sizes, "out": tuple(_plain(size) for size in self.layout.size)}

    def blocks(self) -> sympy.Expr:
        return _number(self.template, "blocks", self.template.blocks(self.sizes(), self.parameters))

    def work(self) -> int:
        """About how many elementary steps a block takes."""
        template, hint = self.template, V.graph.sizevars.optimization_hint
        if template.work is not None:
            steps = _number(template, "work", template.work(self.sizes(), self.parameters))
            return max(1, int(hint(steps, fallback=1 << 15)))
        elements, blocks = (int(hint(n, fallback=1)) for n in (sympy_product(self.layout.size), self.blocks()))
        return max(1, elements // max(1, blocks))


def _plain(size: Any) -> Any:
    return int(size) if isinstance(size, sympy.Integer) else size


def _number(template: Template, what: str, value: Any) -> sympy.Expr:
    if isinstance(value, (int, sympy.Expr)) and not isinstance(value, bool):
        return sympy.sympify(value)
    raise TypeError(
        f"register_template(): {what} of {template.name}: expected an int or a symbolic size, got {value!r} "
        f"({type(value).__name__})"
    )


class _Features(SIMDKernelFeatures):
    """Those of the fused nodes; the template's operands are indexed as well."""

    def __init__(self, nodes: Sequence[Any], call: TemplateCall) -> None:
        super().__init__(list(nodes), sympy_product(call.layout.size))
        self.operands = [ir.Buffer(name=None, layout=node.get_layout()) for node in call.tensors().values()]
        self.operands.append(ir.Buffer(name=None, layout=call.layout))

    def select_index_dtype(self) -> torch.dtype:
        fits = SIMDScheduling.can_use_32bit_indexing(self.numel, self.operands)
        return super().select_index_dtype() if fits else torch.int64


class _ResultWalk(Walk):
    """Rows are those of the result, whatever the periods of the index variables."""

    def __init__(self, kernel: TemplateKernel, row_length: sympy.Expr) -> None:
        self.given = row_length
        super().__init__(kernel, kernel.range_trees[0], kernel.item_entries)

    def _row_length(self) -> sympy.Expr:
        return self.given

    def _in_column(self, e: Any, row: str) -> str:
        whole = e.divisor == 1 and V.graph.sizevars.statically_known_equals(e.length, self.tree.numel)
        return self.flat if whole else super()._in_column(e, row)


class TemplateKernel(Kernel):
    def __init__(self, call: TemplateCall, result: str, fused: Sequence[Any]) -> None:
        """`result` is the name of the buffer that the template writes, `fused` the scheduler's nodes after it."""
        features = _Features(fused, call)
        super().__init__({"x": features.numel}, features=features)
        self.signature: TemplateSignature
        self.call, self.result = call, result
        self.form = Form.ROWS

    def generate(self, fused: Sequence[Any]) -> str:
        """The source, with KERNEL_NAME for the name."""
        with self._with_result():
            with self:
                self._define_operands()
                self._collect(fused)
            with V.set_kernel_handler(self):
                return self.codegen_kernel()

    def _with_result(self) -> Any:
        """Tells the graph of the result's dtype: that of a choice which is only measured is no buffer of it."""
        dtype, name, others = self.call.layout.dtype, self.result, V.graph.get_dtype
        return patch.object(V.graph, "get_dtype", lambda of: dtype if of == name else others(of))

    def codegen_kernel(self, name: str = "KERNEL_NAME") -> str:
        self.codegen_body()
        body = IndentedBuffer()
        self._declare(body)
        self._store_row(body)
        body.splice(self.call.template.source)
        self.signature = signature = TemplateSignature(self)
        return self._definitions() + signature.source(name, body.getvalue())

    def extents(self) -> list[Any]:
        """None: a template knows the sizes of its operands."""
        return []

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper, device = V.graph.wrapper_code, V.graph.get_current_device_or_throw()
        arguments, types = self.arguments(name)
        wrapper.generate_kernel_call(name, arguments, triton=False, arg_types=types, device=device)

    def arguments(self, name: str) -> tuple[list[Any], list[Any]]:
        """Of a call, in the order of the parameters: names of buffers and symbolic sizes; and their types."""
        with self._with_result():
            arguments, types = call_arguments(self, name)
        if self.signature.counts_blocks:
            arguments.append(self.call.blocks())
            types.append(sympy.Expr)
        return arguments, types

    # -- the parts

    def _define_operands(self) -> None:
        """Makes the operands arguments of the kernel, and finds the symbols that sizes and strides are made of."""
        lines: list[str] = []
        for name, value in self.call.arguments.items():
            if not isinstance(value, ir.IRNode):
                lines.append(_constant(name, value))
                continue
            layout = value.get_layout()
            pointer, of = self.args.input(value.get_name()), STORED[layout.dtype]
            lines.append(f"typedef {of} {name}_type;")
            offset = self._size(layout.offset)
            lines.append(f"const {of}* const {name} = reinterpret_cast<const {of}*>({pointer}) + {offset};")
            lines += self._dimensions(name, "size", layout.size) + self._dimensions(name, "stride", layout.stride)
        lines.append(f"typedef {c_type(self.call.layout.dtype)} out_value;")
        lines += self._dimensions("out", "size", self.call.layout.size)
        self.declarations = [*lines, *(f"constexpr int {name} = {n};" for name, n in self.call.parameters.items())]

    def _dimensions(self, name: str, what: str, numbers: Iterable[Any]) -> list[str]:
        return [
            f"{'constexpr' if isinstance(n, (int, sympy.Integer)) else 'const'} mb_index {name}_{what}{i} = "
            f"{self._size(n)};"
            for i, n in enumerate(numbers)
        ]

    def _size(self, expr: Any) -> str:
        return str(self.index_to_str(self.rename_indexing(sympy.sympify(expr))))

    def _collect(self, fused: Sequence[Any]) -> None:
        """Operations on the element (row, xcolumn): its store, left out if only fused nodes need it, and theirs."""
        layout = self.call.layout
        value = self.cse.generate(self.compute, "values[xcolumn - first]", dtype=compute_dtype(layout.dtype), shape=())
        variables = self.split_and_set_ranges((layout.size, ()))[0]
        ops.store(self.result, layout.make_indexer()(variables), value)
        for node in fused:
            node.codegen(self.split_and_set_ranges(node.get_ranges()))

    def _declare(self, code: IndentedBuffer) -> None:
        code.writelines(self.declarations)
        count = self.call.blocks()
        static = isinstance(count, sympy.Integer)
        code.writeline(
            f"constexpr mb_index blocks = {count};" if static else "const mb_index blocks = mb_index(block_count);"
        )

    def _store_row(self, code: IndentedBuffer) -> None:
        """store_row(row, first, last, values), and store(row, column, value) by it."""
        size = self.call.layout.size
        walk = _ResultWalk(self, sympy.sympify(size[-1]) if size else sympy.S.One)
        parameters = "const mb_index row, const mb_index first, const mb_index last, const out_value* const values"
        code.writeline(f"const auto store_row = [&]({parameters}) MB_INLINE_LAMBDA {{")
        with code.indent():
            code.writelines(walk.row_lines("row"))
            for segment in self.segments:
                code.writelines([f"mb_u64 {check.name} = 0;" for check in segment.checks])
                written = {d.name for d in self.args.python_argdefs()[0] if d.name.startswith("out")}
                changing = {walk.column, walk.flat, *(str(e.name) for e in walk.entries if not walk.is_row(e))}
                lines = segment.lines.getvalue().replace("$once$", "").splitlines()
                constant, lines, checks = hoist(lines, changing, segment.checks, written)
                clauses = " ".join(f"reduction(max : {check.name})" for check in checks)
                code.writelines([*constant, f"MB_SIMD({clauses})"])
                code.writeline(f"for (mb_index {walk.column} = first; {walk.column} < last; {walk.column}++) {{")
                with code.indent():
                    code.writelines([*walk.column_lines("row"), *lines])
                code.writeline("}")
                code.writelines(
                    [f"mb_report_outside(mb_error, {check.name}, {check.size});" for check in segment.checks]
                )
        code.writeline("};")
        parameters = "const mb_index row, const mb_index column, const out_value value"
        code.writeline(f"const auto store = [&]({parameters}) MB_INLINE_LAMBDA {{")
        code.writeline("  store_row(row, column, column + 1, &value);")
        code.writeline("};")

    def _definitions(self) -> str:
        template = self.call.template
        lines = [f'#include "{header}"' for header in template.headers]
        if template.definitions:
            guard = template.guard()
            lines += [f"#ifndef {guard}", f"#define {guard}", template.definitions, "#endif"]
        return "".join(line + "\n" for line in lines)


class TemplateSignature(Signature):
    """A call's last argument is the number of blocks, where it is not known in advance."""

    def __init__(self, kernel: TemplateKernel) -> None:
        super().__init__(kernel)
        self.count = kernel.call.blocks()
        self.counts_blocks = not isinstance(self.count, sympy.Integer)
        if self.counts_blocks:
            self.parameters.append(Parameter("mb_i64", "block_count", "i"))

    def launch_plan(self) -> LaunchPlan:
        kinds, _, _, form, unit, can_fail, messages = super().launch_plan()
        call = self.kernel.call
        items = -1 - (len(self.parameters) - 1) if self.counts_blocks else int(self.count)
        # runtime::LaunchPlan's work of an item says on a GPU how many threads share it, four elements each.
        work = 4 * call.template.threads if mybackend.driver() == "cuda" else call.work()
        return kinds, [items], [work], form, unit, can_fail, messages


def _constant(name: str, value: Any) -> str:
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return f"constexpr {c_type(dtype)} {name} = {c_constant(value, dtype)};"
