"""One fused kernel: Inductor's operations become C++ lines, collected in segments; emit.py makes the text of them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import sympy
import torch
from torch._inductor.codegen.common import CSE, CSEVariable, DeferredLine, IndentedBuffer, PythonPrinter
from torch._inductor.codegen.simd import SIMDKernel
from torch._inductor.codegen.triton_utils import should_unwrap_unspec_arg
from torch._inductor.virtualized import V as virtualized
from torch.utils._ordered_set import OrderedSet
from torch.utils._sympy.value_ranges import ValueRanges

from mybackend.compile.c_types import LOW_PRECISION, c_type, compute_dtype, stored_type
from mybackend.compile.chunks import Access
from mybackend.compile.emit import emit
from mybackend.compile.overrides import Overrides
from mybackend.compile.printer import index_text
from mybackend.compile.reductions import Accumulator, make_reduction
from mybackend.compile.scans import make_scan
from mybackend.compile.segments import BoundsCheck, Segment
from mybackend.compile.signature import Signature, call_arguments

__all__ = ["Kernel"]

V: Any = virtualized


class TypedCSE(CSE):
    """Common subexpressions in variables of the dtype's own C++ type, so that arithmetic of int8 and bool is ATen's."""

    def newvar(self, bounds: Any = None, dtype: Any = None, shape: Any = None) -> CSEVariable:
        self.prefix = f"const {c_type(dtype)} " if isinstance(dtype, torch.dtype) else "const auto "
        return super().newvar(ValueRanges.unknown() if bounds is None else bounds, dtype, shape)


def _is_indirect(index: sympy.Expr) -> bool:
    return any(str(symbol).startswith(("tmp", "index")) for symbol in index.free_symbols)


class Kernel(SIMDKernel):
    overrides = Overrides
    suffix = ";"
    newvar_prefix = "const auto "
    # Declared by the base class.
    compute: Any
    inside_reduction: bool
    _load_mask: Any
    kexpr = staticmethod(index_text)
    sexpr = staticmethod(index_text)
    pexpr = PythonPrinter().doprint

    def __init__(self, tiling: dict[str, sympy.Expr], **options: Any) -> None:
        super().__init__(tiling, **options)
        self.cse = TypedCSE(self.newvar_prefix, self.suffix)
        # All lines go into one buffer in program order: the compiler moves loads and stores better than we could.
        self.loads = self.stores = self.compute
        self.segments: list[Segment] = []
        self.segment = Segment(is_loop=self.inside_reduction, lines=self.compute)
        self.item_entries: list[Any] = []  # index variables of the items, in order of first use
        self.accesses: list[sympy.Expr] = []  # indices of loads and stores in loops
        # Of the elements form, by the text of the element.
        self.plain_loads: dict[str, Access] = {}
        self.plain_stores: dict[str, Access] = {}
        self.messages: list[str] = []  # of assertions
        self.can_fail = False
        self.uses_special_functions = False
        self.adds = False  # to elements that several items share
        self.chooses = False  # has a `where`
        self.tests_choices = False  # has a test for NaN after one
        self.structs: dict[str, str] = {}  # text -> name of what the body begins with
        self._numbers = itertools.count()
        self._kept: OrderedSet[CSEVariable] = OrderedSet()  # variables that outlive their segment
        self._within: dict[sympy.Expr, sympy.Symbol] = {}  # checked index -> the same, made safe to use

    def dtype_to_str(self, dtype: torch.dtype) -> str:
        return stored_type(dtype)

    # -- memory

    def load(self, name: str, index: sympy.Expr) -> CSEVariable:
        pointer = self.args.input(name)
        dtype = V.graph.get_dtype(name)
        held = compute_dtype(dtype)
        if should_unwrap_unspec_arg(name):  # a 0-d CPU tensor is passed by value
            return self.cse.generate(self.compute, f"{c_type(dtype)}({pointer})", dtype=held, shape=())
        element = f"{pointer}[{self._index(index)}]"
        if not self._load_mask and not self.features.is_reduction() and not _is_indirect(self.accesses[-1]):
            self.plain_loads[element] = Access(pointer, self.accesses[-1], stored_type(dtype), dtype.itemsize)
        text = f"mb_load({element})" if dtype in (*LOW_PRECISION, torch.bool) else element
        return self.cse.generate(self.compute, text, dtype=held, shape=())

    def store(self, name: str, index: sympy.Expr, value: CSEVariable, mode: Any = None) -> None:
        pointer, dtype = self.args.output(name), V.graph.get_dtype(name)
        element = f"{pointer}[{self._index(index)}]"
        converted = self._stored(value, dtype)
        if mode is None:
            if not self.features.is_reduction() and not _is_indirect(self.accesses[-1]):
                self.plain_stores[element] = Access(pointer, self.accesses[-1], stored_type(dtype), dtype.itemsize)
            line = f"{element} = {converted};"
        elif mode == "atomic_add":
            line = f"MB_ADD(&{element}, {converted});"
            self.adds = True
        else:
            raise NotImplementedError(f"mybackend.compile has no store of mode '{mode}'")
        # In a kernel with a reduction, one thread of the block stores what is the same in all.
        once = "$once$" if self.features.is_reduction() and not self.inside_reduction else ""
        self.compute.writeline(DeferredLine(name, once + line))

    def store_reduction(self, name: str, index: sympy.Expr, value: CSEVariable) -> None:
        prior, self.inside_reduction = self.inside_reduction, False
        try:
            element = f"{self.args.output(name)}[{self._index(index)}]"
        finally:
            self.inside_reduction = prior
        line = f"$once${element} = {self._stored(value, V.graph.get_dtype(name))};"
        self.segment.after.writeline(DeferredLine(name, line))

    def _index(self, index: sympy.Expr) -> str:
        # Before Inductor rewrites the index, after which what was checked may not be found in it. What was checked as a
        # sum of terms is replaced before its terms are.
        for checked in sorted(self._within, key=lambda expr: -len(expr.args)):
            index = index.subs(checked, self._within[checked])
        index = self.prepare_indexing(index)
        if self.inside_reduction or not self.features.is_reduction():
            self.accesses.append(index)
        return str(self.index_to_str(index))

    def _stored(self, value: CSEVariable, dtype: torch.dtype) -> str:
        same = value.dtype == dtype and dtype not in LOW_PRECISION
        return str(value) if same else f"mb_to<{stored_type(dtype)}>::from({value})"

    # -- control

    @contextlib.contextmanager
    def masked_by(self, mask: CSEVariable) -> Iterator[None]:
        prior, self._load_mask = self._load_mask, str(mask)
        prior_within = dict(self._within)
        try:
            yield
        finally:
            self._load_mask, self._within = prior, prior_within

    @contextlib.contextmanager
    def swap_buffers(self, lb: IndentedBuffer, cb: Any = None, sb: Any = None) -> Iterator[None]:
        # Loads and compute are one buffer here, and a masked body may not store.
        with super().swap_buffers(lb, lb, sb):
            yield

    def check_bounds(self, expr: sympy.Expr, size: sympy.Expr, lower: bool, upper: bool) -> None:
        """An index outside [0, size) is remembered and 0 used instead; it is reported after the loop."""
        if not (lower or upper):
            return
        self.can_fail = True
        check = BoundsCheck(f"outside{next(self._numbers)}", self.index_to_str(size))
        self.segment.checks.append(check)
        safe = f"index{next(self._numbers)}"
        index = self.index_to_str(self.prepare_indexing(expr))
        self.compute.writeline(f"const mb_u64 {safe}_out = mb_outside({index}, {check.size});")
        self.compute.writeline(f"{check.name} = {safe}_out > {check.name} ? {safe}_out : {check.name};")
        self.compute.writeline(f"const mb_i64 {safe} = {safe}_out == 0ull ? mb_i64({index}) : 0ll;")
        self._within[expr] = sympy.Symbol(safe, integer=True, nonnegative=True)

    def device_assert_async(self, cond: Any, msg: str) -> None:
        self.can_fail = True
        if msg not in self.messages:
            self.messages.append(msg)
        number = f"message{self.messages.index(msg)}"
        self.compute.writeline(f"if (!({cond})) mb_report(mb_error, MB_ERROR_ASSERTION, {number}, 0);")

    def bucketize(
        self,
        values: CSEVariable,
        boundaries: tuple[str, sympy.Expr, sympy.Expr, sympy.Expr],
        boundary_indices: CSEVariable,
        indexing_dtype: torch.dtype,
        right: bool,
        sorter: tuple[str, sympy.Expr] | None = None,
        sorter_indices: CSEVariable | None = None,
    ) -> CSEVariable:
        name, count, _, stride = boundaries
        arguments = [
            str(values), self.args.input(name), self.index_to_str(count), str(boundary_indices),
            self.index_to_str(stride), "true" if right else "false",
        ]  # fmt: skip
        if sorter is not None:
            arguments += [self.args.input(sorter[0]), str(sorter_indices), self.index_to_str(sorter[1])]
        text = f"mb_bucketize<{c_type(indexing_dtype)}>({', '.join(arguments)})"
        return self.cse.generate(self.compute, text, dtype=indexing_dtype, shape=())

    # -- reductions and scans

    def new_name(self, kind: str) -> str:
        return f"{kind}{next(self._numbers)}"

    def new_accumulator(self, of: str, initial: str, operator: str | None) -> Accumulator:
        return Accumulator(self.new_name("acc"), of, initial, operator)

    def define_struct(self, text: str) -> str:
        """Defines the struct that `text` calls STRUCT, or finds it defined; returns its name."""
        return self.structs.setdefault(text, f"values{len(self.structs)}")

    @contextlib.contextmanager
    def apart(self, lines: IndentedBuffer) -> Iterator[TypedCSE]:
        """Operations within write into `lines`, with variables of their own."""
        prior = self.cse, self.compute
        self.cse, self.compute = TypedCSE(self.newvar_prefix, self.suffix), lines
        try:
            yield self.cse
        finally:
            self.cse, self.compute = prior

    def scan(
        self,
        dtypes: tuple[torch.dtype, ...],
        combine_fn: Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]],
        values: tuple[CSEVariable, ...],
    ) -> tuple[CSEVariable, ...]:
        if self._load_mask:
            raise NotImplementedError("mybackend.compile: a scan inside a masked expression")
        scan = make_scan(self, dtypes, combine_fn, values)
        # Each result of a scan of several values is asked for by itself.
        for other in self.segment.scans:
            if (other.struct, other.values) == (scan.struct, scan.values):
                return tuple(variable for variable, _ in other.results)
        self.segment.scans.append(scan)
        self.compute.writeline(scan.marker)
        return tuple(variable for variable, _ in scan.results)

    def flat_reduction_index(self) -> str:
        return next(str(tree.name) for tree in self.range_trees if tree.is_reduction)

    def reduction(self, dtype: torch.dtype, src_dtype: torch.dtype, reduction_type: str, value: Any) -> Any:
        key = (src_dtype, reduction_type, value)
        if key in self.cse.reduction_cache:
            return self.cse.reduction_cache[key]
        if self._load_mask:
            raise NotImplementedError("mybackend.compile: a reduction inside a masked expression")
        reduction = make_reduction(self, dtype, src_dtype, reduction_type, value)
        self.segment.reductions.append(reduction)
        self.compute.writelines(reduction.updates)
        results = tuple(variable for variable, _ in reduction.results)
        self._kept.update(results)
        result = results if len(results) > 1 else results[0]
        self.cse.reduction_cache[key] = result
        return result

    def variable_type(self, variable: CSEVariable) -> str:
        assert variable.dtype is not None
        return c_type(variable.dtype)

    # -- index variables and segments

    def codegen_iteration_ranges_entry(self, entry: Any) -> None:
        entries = self.segment.entries if entry.root.is_loop else self.item_entries
        if entry not in entries:
            entries.append(entry)

    def codegen_body(self) -> None:
        """Ends the segment; called where a loop over a reduction begins or ends, and at the end."""
        ended = self.segment
        if ended:
            self.segments.append(ended)
        if ended.is_loop:
            self.cse.invalidate(self._kept)
            for tree in self.range_trees:
                if tree.is_loop:
                    tree.cache_clear()
        else:
            self._kept.update(self.cse.varname_map.values())
        self._within = {}
        self.compute = self.loads = self.stores = IndentedBuffer()
        # disable_reduction() ends a loop before it leaves it and ends what follows before it enters the next.
        self.segment = Segment(is_loop=not ended.is_loop and self.features.is_reduction(), lines=self.compute)

    # -- the whole

    def extents(self) -> list[Any]:
        """The ranges whose sizes are parameters of the kernel, or constants in it."""
        return [tree for tree in self.range_trees if not tree.is_reduction or self.features.is_reduction()]

    def body_text(self) -> str:
        """What stands between the braces of the kernel's function."""
        self.codegen_body()
        return emit(self)

    def codegen_kernel(self, name: str = "KERNEL_NAME") -> str:
        body = self.body_text()
        self.signature = Signature(self)
        return self.signature.source(name, body)

    def call_kernel(self, name: str, node: Any = None, deallocate_ws: bool = True) -> None:
        wrapper = V.graph.wrapper_code
        for workspace in self.args.workspace_args:
            wrapper.generate_workspace_allocation(workspace)
        arguments, types = call_arguments(self, name)
        device = V.graph.get_current_device_or_throw()
        wrapper.generate_kernel_call(name, arguments, triton=False, arg_types=types, device=device)
        if deallocate_ws:
            self.deallocate_workspaces()

    def codegen_nan_check(self) -> None:
        wrapper = V.graph.wrapper_code
        _, call_args, _, arg_types = self.args.python_argdefs()
        for argument, arg_type in zip(call_args, arg_types, strict=True):
            if isinstance(arg_type, torch.dtype) and arg_type.is_floating_point:
                wrapper.writeline(f"assert not {argument}.isnan().any().item()")
                wrapper.writeline(f"assert not {argument}.isinf().any().item()")
