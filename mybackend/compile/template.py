"""Templates: an operator lowered to a kernel written by hand, into which the pointwise code after it is fused.

    register_template    gives an operator of torch.library a kernel in CUDA C++ of the one-source form
    ceil_div             how many pieces of a size are needed, for numbers of blocks

This module knows what a template is and refuses one that cannot work; it imports nothing of Inductor, so that templates
can be registered without it. template_kernel.py writes the source, template_choice.py chooses and schedules.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from mybackend.compile import lowering_registry

__all__ = ["Parameters", "Template", "ceil_div", "register_template"]

Parameters = Mapping[str, int]
Sizes = dict[str, tuple[Any, ...]]

# Names that a template's kernel has already.
RESERVED = {"out", "store", "store_row", "blocks", "row", "first", "last", "values", "mb_index", "mb_error", "xnumel"}
STORES = re.compile(r"\bstore(_row)?\b")
ARGUMENTS = {"TensorType": "Tensor", "IntType": "int", "FloatType": "float", "BoolType": "bool", "SymIntType": "int"}


@dataclass(frozen=True)
class Template:
    """What `register_template` describes; `inputs` are the operator's arguments, tensors and numbers, by name."""

    name: str
    inputs: tuple[str, ...]
    source: str
    blocks: Callable[[Sizes, Parameters], Any]
    parameters: tuple[Parameters, ...] = ({},)
    work: Callable[[Sizes, Parameters], Any] | None = None
    definitions: str = ""
    headers: tuple[str, ...] = ()
    threads: int = 256
    prefer: Callable[[Sizes], bool] | None = None

    def identity(self) -> str:
        """All that decides what is generated, for cache keys."""
        functions = [lowering_registry.source_of(f) for f in (self.blocks, self.work, self.prefer) if f is not None]
        parts = [self.name, *self.inputs, self.source, repr(self.parameters), self.definitions, *self.headers]
        return "\0".join([*parts, str(self.threads), *functions])

    def guard(self) -> str:
        """A macro of its own for the definitions, which a graph's source has once."""
        return "MB_TEMPLATE_" + hashlib.sha256(self.definitions.encode()).hexdigest()[:16]


def ceil_div(size: Any, piece: int) -> Any:
    """`size / piece` rounded up, of a number or of a symbolic size."""
    if isinstance(size, int):
        return -(-size // piece)
    from torch.utils._sympy.functions import FloorDiv

    return FloorDiv(size + (piece - 1), piece)


def register_template(
    operator: Any,
    source: str,
    *,
    blocks: Callable[[Sizes, Parameters], Any],
    parameters: Sequence[Parameters] = ({},),
    work: Callable[[Sizes, Parameters], Any] | None = None,
    definitions: str = "",
    headers: Sequence[str] = (),
    threads: int = 256,
    prefer: Callable[[Sizes], bool] | None = None,
) -> None:
    """Registers a kernel for an operator, and lets Inductor fuse the pointwise code after it into the kernel.

    Args:
        operator: a `torch.ops.<namespace>.<name>` or one overload of it, with a fake (`register_fake`) and an eager
            implementation. It takes Tensors, ints, floats and bools, changes none of them, and returns one new Tensor.
        source: the body of the kernel, C++ with the words of mybackend/compile/prelude: most often a loop
            `MB_BLOCKS(block, blocks) {...}`, whose blocks are shared out among cores on the host and are blocks of
            threads on a GPU. For each Tensor `x` of the schema there are a pointer `x`, its sizes `x_size0`, ..., its
            strides `x_stride0`, ... (in elements) and the type `x_type` of its elements; numbers have their names. Of
            the result there are `out_size0`, ..., and `out_value`, the type its elements are computed in (float for
            16-bit floating point). Each parameter is a constant of type int. Values leave through one of

                store(row, column, value)                  one element; rows are those of the result's last dimension
                store_row(row, first, last, values)        the elements [first, last) of a row, vectorised on the host

            once for each element, by any one thread. What is fused is computed there, so a stored element cannot be
            read back.
        blocks: `blocks(sizes, parameters)` is the number of blocks; `sizes` has the tuple of sizes of every Tensor by
            name, and of "out". With dynamic shapes they are symbols: use `ceil_div` to divide.
        parameters: the sets of parameters (such as sizes of tiles) worth trying. `mode="max-autotune"` measures each
            of them and the operator's call and takes the fastest; without it the first set is used.
        work: `work(sizes, parameters)`, about how many elementary steps a block takes; small blocks
            share a core. The default is a block's share of the result.
        definitions: C++ functions that the source calls, MB_FN in the words of the prelude; put before the kernel.
        headers: headers of the prelude that the source needs besides those of every kernel, e.g. "tile_product.h".
        threads: of a block on a GPU, up to 512. The kernel must be right for other numbers too: on the host it is one.
        prefer: `prefer(sizes)` says whether the template is used without measuring; the default is always.

    Raises TypeError or ValueError when an argument is not as described. A source that does not compile is reported by
    the first call of the compiled function.
    """
    for overload in lowering_registry.overloads_of(operator, "register_template()"):
        template = Template(
            name=re.sub(r"\W", "_", f"{overload.namespace}_{overload._opname}"),
            inputs=_inputs(overload),
            source=source,
            blocks=blocks,
            parameters=tuple(dict(one) for one in _listed(parameters)),
            work=work,
            definitions=definitions,
            headers=tuple(headers),
            threads=threads,
            prefer=prefer,
        )
        _check(template)
        lowering_registry.register_lowering(overload, _lowering(overload, template))


def _lowering(overload: torch._ops.OpOverload, template: Template) -> Callable[..., Any]:
    def lowering(*args: Any, **kwargs: Any) -> Any:
        from mybackend.compile.template_choice import lower_operator

        return lower_operator(overload, template, args, kwargs)

    lowering.source = template.identity()  # type: ignore[attr-defined]
    return lowering


def _inputs(overload: torch._ops.OpOverload) -> tuple[str, ...]:
    schema = overload._schema
    if schema.is_mutable:
        raise ValueError(f"register_template(): {overload} changes an argument, expected an operator that does not")
    if [type(returned.type).__name__ for returned in schema.returns] != ["TensorType"]:
        returned = ", ".join(str(r.type) for r in schema.returns) or "nothing"
        raise ValueError(f"register_template(): {overload} returns {returned}, expected one Tensor")
    for argument in schema.arguments:
        if type(argument.type).__name__ not in ARGUMENTS:
            raise ValueError(
                f"register_template(): {overload} has the argument {argument.name} of type {argument.type}, expected "
                f"one of {', '.join(sorted(set(ARGUMENTS.values())))}"
            )
    return tuple(argument.name for argument in schema.arguments)


def _listed(parameters: Any) -> list[Any]:
    sets = list(parameters) if isinstance(parameters, Sequence) and not isinstance(parameters, str) else None
    if not sets or not all(isinstance(one, Mapping) for one in sets):
        raise TypeError(
            "register_template(): parameters: expected a sequence of mappings from names to ints, one or more, got "
            f"{parameters!r}"
        )
    return sets


def _check(template: Template) -> None:
    for what, text in (("source", template.source), ("definitions", template.definitions)):
        if not isinstance(text, str):
            raise TypeError(f"register_template(): {what}: expected C++ text, got {type(text).__name__}")
    for what, function, needed in (
        ("blocks", template.blocks, True), ("work", template.work, False), ("prefer", template.prefer, False),
    ):  # fmt: skip
        if not callable(function) and (needed or function is not None):
            raise TypeError(f"register_template(): {what}: expected a function, got {function!r}")
    if not STORES.search(template.source):
        raise ValueError("register_template(): source: it never calls store() or store_row(), expected one of them")
    if not isinstance(template.threads, int) or not 32 <= template.threads <= 512 or template.threads % 32:
        raise ValueError(
            f"register_template(): threads: expected a multiple of 32 from 32 to 512, got {template.threads!r}"
        )
    names = set(template.parameters[0])
    for one in template.parameters:
        if set(one) != names:
            raise ValueError(
                f"register_template(): parameters: every set has the same names, got {sorted(names)} and {sorted(one)}"
            )
        for name, value in one.items():
            if not name.isidentifier() or name in RESERVED or name in template.inputs:
                raise ValueError(
                    f"register_template(): parameters: {name!r} is not a name that is free; taken are the operator's "
                    f"arguments ({', '.join(template.inputs)}) and {', '.join(sorted(RESERVED))}"
                )
            if type(value) is not int:
                raise TypeError(f"register_template(): parameters: {name}: expected an int, got {value!r}")
    taken = RESERVED.intersection(template.inputs)
    if taken:
        raise ValueError(f"register_template(): the operator's argument {taken.pop()} has a name the kernel needs")


def signature_of(overload: torch._ops.OpOverload) -> inspect.Signature:
    """The operator's arguments with their defaults."""
    parameters = []
    for argument in overload._schema.arguments:
        default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
        kind = inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(argument.name, kind, default=default))
    return inspect.Signature(parameters)
