"""Reductions in generated code: accumulators, how a value enters one, and how its result is read.

An accumulator is a scalar, or an array with one element for each lane. It is written `$name$` until the kernel's form
is known. Sums, products, extremes and logical reductions are what `omp simd reduction` can vectorise as scalars;
positions of extremes (argmax) and moments (Welford) vectorise in lanes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch._inductor import ir

from mybackend.compile.c_types import c_constant, c_type, compute_dtype

__all__ = ["Accumulator", "Reduction", "make_reduction"]


@dataclass(frozen=True)
class Accumulator:
    name: str
    type: str
    initial: str
    operator: str | None = None  # of the clause reduction(operator : name)

    @property
    def is_inexact(self) -> bool:
        """Whether it matters in which order terms are added."""
        return self.operator == "+" and self.type in ("float", "double")

    @property
    def ref(self) -> str:
        return f"${self.name}$"


@dataclass
class Reduction:
    """One reduction of a loop.

    `results` are pairs of a result variable and its value given the accumulators; `{0}`, `{1}`, ... in a value stand
    for the combined accumulators: `combine` says how those of a block's threads (and lanes) become one, after the line
    `preamble`, if any.
    """

    accumulators: list[Accumulator]
    updates: list[str]
    in_lanes: bool
    combine: list[str]
    results: list[tuple[Any, str]] = field(default_factory=list)
    preamble: str | None = None


# reduction type -> (operator of C and OpenMP, combining struct of the prelude, initial value)
_PLAIN = {"sum": ("+", "mb_add", 0), "prod": ("*", "mb_multiply", 1), "xor_sum": ("^", "mb_exclusive_or", 0)}

# The same of truth values, in ints: vectors of bool do not exist.
_LOGICAL = {
    "any": ("|", "mb_or", 0), "sum": ("|", "mb_or", 0), "prod": ("&", "mb_and", 1),
    "xor_sum": ("^", "mb_exclusive_or", 0),
}  # fmt: skip


def make_reduction(kernel: Any, dtype: torch.dtype, src_dtype: torch.dtype, kind: str, value: Any) -> Reduction:
    """The reduction of `value`, whose dtype is `src_dtype`, to `dtype`; its results are new variables of the kernel."""
    if kind == "any" or (dtype == torch.bool and kind in _LOGICAL):
        return _logical(kernel, kind, value)
    if kind in _PLAIN:
        return _plain(kernel, dtype, kind, value)
    if kind in ("max", "min"):
        return _extreme(kernel, src_dtype, kind, value)
    if kind in ("argmax", "argmin"):
        return _position(kernel, src_dtype, kind, value)
    if kind in ("welford_reduce", "welford_combine"):
        return _moments(kernel, dtype, kind, value)
    raise NotImplementedError(f"mybackend.compile has no reduction '{kind}'")


def _plain(kernel: Any, dtype: torch.dtype, kind: str, value: Any) -> Reduction:
    operator, combining, initial = _PLAIN[kind]
    dtype = compute_dtype(dtype)
    acc = kernel.new_accumulator(c_type(dtype), c_constant(initial, dtype), operator)
    result = kernel.cse.newvar(dtype=dtype, shape=())
    return Reduction(
        [acc], [f"{acc.ref} {operator}= {c_type(dtype)}({value});"], False,
        [f"mb_all<{combining}>({acc.name})"], [(result, "{0}")],
    )  # fmt: skip


def _logical(kernel: Any, kind: str, value: Any) -> Reduction:
    operator, combining, initial = _LOGICAL[kind]
    acc = kernel.new_accumulator("int", str(initial), operator)
    result = kernel.cse.newvar(dtype=torch.bool, shape=())
    return Reduction(
        [acc], [f"{acc.ref} {operator}= int({value} != 0);"], False, [f"mb_all<{combining}>({acc.name})"],
        [(result, "{0} != 0")],
    )  # fmt: skip


def _comparable(dtype: torch.dtype) -> torch.dtype:
    """What values are compared in: bool as int, since vectors of bool do not exist."""
    dtype = compute_dtype(dtype)
    return torch.int32 if dtype == torch.bool else dtype


def _first(kind: str, dtype: torch.dtype) -> str:
    return c_constant(ir.Reduction.default_accumulator(kind, dtype), dtype)


def _extreme(kernel: Any, src_dtype: torch.dtype, kind: str, value: Any) -> Reduction:
    dtype = _comparable(src_dtype)
    of = c_type(dtype)
    comparison, combining = (">", "mb_larger") if kind == "max" else ("<", "mb_smaller")
    extreme = kernel.new_accumulator(of, _first(kind, dtype), kind)
    result = kernel.cse.newvar(dtype=compute_dtype(src_dtype), shape=())
    update = f"{extreme.ref} = {of}({value}) {comparison} {extreme.ref} ? {of}({value}) : {extreme.ref};"
    combine = f"mb_all<{combining}>({extreme.name})"
    if not dtype.is_floating_point:
        return Reduction([extreme], [update], False, [combine], [(result, "{0}")])
    nans = kernel.new_accumulator(of, f"{of}(0)", "+")
    count = f"{nans.ref} += {value} != {value} ? {of}(1) : {of}(0);"
    return Reduction(
        [extreme, nans], [update, count], False, [combine, f"mb_all<mb_add>({nans.name})"],
        [(result, "mb_or_nan({0}, {1})")],
    )  # fmt: skip


def _position(kernel: Any, src_dtype: torch.dtype, kind: str, value: Any) -> Reduction:
    """`value` may come with the index to report; else that is the flat index of the reduction."""
    value, index = value if isinstance(value, tuple) else (value, kernel.flat_reduction_index())
    dtype = _comparable(src_dtype)
    of = c_type(dtype)
    struct = "mb_largest" if kind == "argmax" else "mb_smallest"
    extreme = kernel.new_accumulator(of, _first(kind, dtype), None)
    # A lane that has seen only the initial value reports the first index it sees.
    position = kernel.new_accumulator("mb_index", "$first$", None)
    result = kernel.cse.newvar(dtype=torch.int64, shape=())
    taken = kernel.cse.newvar(dtype=torch.bool, shape=())
    updates = [
        f"const bool {taken} = {struct}::replaces({of}({value}), {extreme.ref});",
        f"{extreme.ref} = {taken} ? {of}({value}) : {extreme.ref};",
        f"{position.ref} = {taken} ? mb_index({index}) : {position.ref};",
    ]
    combine = f"mb_all_found<{struct}>({extreme.name}, {position.name}).index"
    return Reduction([extreme, position], updates, True, ["", combine], [(result, "{1}")])


def _moments(kernel: Any, dtype: torch.dtype, kind: str, value: Any) -> Reduction:
    """(mean, sum of squared differences, weight), by Welford's update or, of partial moments, Chan's combination."""
    dtype = compute_dtype(dtype)
    of = c_type(dtype)
    mean, m2, weight = (kernel.new_accumulator(of, f"{of}(0)", None) for _ in range(3))
    delta, total = (kernel.cse.newvar(dtype=dtype, shape=()) for _ in range(2))
    results = [kernel.cse.newvar(dtype=dtype, shape=()) for _ in range(3)]
    if kind == "welford_reduce":
        updates = [
            f"{weight.ref} += {of}(1);",
            f"const {of} {delta} = {of}({value}) - {mean.ref};",
            f"{mean.ref} += {delta} / {weight.ref};",
            f"{m2.ref} += {delta} * ({of}({value}) - {mean.ref});",
        ]
    else:
        other_mean, other_m2, other_weight = value
        share = kernel.cse.newvar(dtype=dtype, shape=())
        updates = [
            f"const {of} {delta} = {other_mean} - {mean.ref};",
            f"const {of} {total} = {weight.ref} + {other_weight};",
            f"const {of} {share} = {total} == {of}(0) ? {of}(0) : {other_weight} / {total};",
            f"{m2.ref} += {other_m2} + {delta} * {delta} * {weight.ref} * {share};",
            f"{mean.ref} += {delta} * {share};",
            f"{weight.ref} = {total};",
        ]
    whole = f"{mean.name}_all"
    return Reduction(
        [mean, m2, weight], updates, True, [f"{whole}.mean", f"{whole}.m2", f"{whole}.weight"],
        [(result, f"{{{i}}}") for i, result in enumerate(results)],
        f"const mb_moments<{of}> {whole} = mb_all_moments({mean.name}, {m2.name}, {weight.name});",
    )  # fmt: skip
