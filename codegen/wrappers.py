"""C++ text: the functions that are registered with the dispatcher, and the declarations a family implements.

A wrapper checks that its tensors share a device, sets the device and calls the implementation. Of a structured group it
builds `structured::{Functional,Inplace,Out}<Op>` (csrc/aten/structured.h), runs `meta` and then `impl`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchgen.api import structured
from torchgen.api.translate import translate
from torchgen.api.types import BaseCType, Binding, Expr, MutRefCType, NamedCType, NativeSignature, tensorT
from torchgen.context import native_function_manager
from torchgen.model import DeviceCheckType, NativeFunction, NativeFunctionsGroup, SchemaKind, TensorOptionsArguments

from codegen.operators import Entry
from codegen.schemas import Schemas

NAMESPACE = "mybackend::aten"
# Their purpose is to join two devices; upstream has no backend whose wrappers would check them.
_JOIN_DEVICES = {"_copy_from", "_copy_from_and_resize"}
_TEMPLATE = {SchemaKind.functional: "Functional", SchemaKind.inplace: "Inplace", SchemaKind.out: "Out"}


@dataclass(frozen=True)
class Wrapper:
    """One registration: `signature` is the C++ function type, by which wrappers share their boxing code."""

    operator: str
    name: str
    header: str
    signature: str
    code: str

    @property
    def registration(self) -> str:
        return f'  m.impl("{self.operator}", &{self.name});'


def wrappers_of(entry: Entry, schemas: Schemas) -> Iterator[Wrapper]:
    """The wrappers of an entry that registers something."""
    operator = entry.operator
    upstream = schemas.shared_kernel(operator) if entry.category == "stub" else None
    header = f"ATen/ops/{operator.function.root_name}_native.h" if upstream else f"generated/{entry.family}.h"
    for function in operator.functions:
        if function.manual_kernel_registration:
            continue
        with native_function_manager(function):
            if operator.group:
                ours = f"structured_{cpp_name(operator.name)}"
                kernel = f"at::native::structured_{upstream.kernel}" if upstream else ours
                yield _structured(function, operator.group, kernel, header)
            else:
                kernel = f"at::native::{upstream.kernel}" if upstream else f"{NAMESPACE}::{cpp_name(operator.name)}"
                symint = upstream.supports_symint() if upstream else False
                yield _unstructured(function, kernel, symint, header)


def declaration(entry: Entry) -> str:
    """What a family has to implement for an entry of category native or library."""
    operator = entry.operator
    with native_function_manager(operator.function):
        if operator.group:
            meta = f"structured_{str(operator.group.functional.func.name).replace('.', '_')}"
            arguments = ", ".join(argument.decl() for argument in structured.impl_arguments(operator.group))
            return f"struct structured_{cpp_name(operator.name)} : at::meta::{meta} {{\n  void impl({arguments});\n}};"
        signature = NativeSignature(operator.function.func, symint=False)
        arguments = ", ".join(argument.defn() for argument in signature.arguments())
        return f"{_returns(signature)} {cpp_name(operator.name)}({arguments});"


def meta_header(entry: Entry) -> str | None:
    return f"ATen/ops/{entry.operator.function.root_name}_meta.h" if entry.operator.group else None


def cpp_name(operator: str) -> str:
    return operator.replace(".", "_")


def _unstructured(function: NativeFunction, kernel: str, symint: bool, header: str) -> Wrapper:
    signature = NativeSignature(function.func, symint=symint)
    names = ", ".join(argument.name for argument in signature.arguments())
    body = [*_device_check(function), *_device_guard(function), f"return {kernel}({names});"]
    return _wrapper(function, signature, body, header)


def _structured(function: NativeFunction, group: NativeFunctionsGroup, kernel: str, header: str) -> Wrapper:
    kind = function.func.kind()
    signature = NativeSignature(function.func, symint=False)
    returns = len(function.func.returns)
    outs = [argument.name for argument in function.func.arguments.out]
    operands = {SchemaKind.functional: "", SchemaKind.inplace: "(self)", SchemaKind.out: f"({', '.join(outs)})"}[kind]

    context: list[Binding | Expr] = list(signature.arguments())
    meta = _expressions(context, structured.meta_arguments(group))
    call = f"op.meta({meta});"
    if group.out.precomputed:
        call = f"[[maybe_unused]] const auto precompute = {call}"
        for arguments in [*group.out.precomputed.replace.values(), group.out.precomputed.add]:
            context += [
                Expr(f"precompute.{argument.name}", structured.argument_type(argument, binds=argument.name))
                for argument in arguments
            ]
    for index, out in enumerate(structured.out_arguments(group)):
        context.append(Expr(f"op.output({index})", NamedCType(out.nctype.name, MutRefCType(BaseCType(tensorT)))))
    impl = _expressions(context, structured.impl_arguments(group))

    body = [
        *_device_check(function),
        f"structured::{_TEMPLATE[kind]}<{kernel}, {returns}> op{operands};",
        call,
        f"op.impl({impl});",
    ]
    if kind is SchemaKind.functional:
        body.append(_return([f"op.take({index})" for index in range(returns)]))
    else:
        body += ["op.finish();", _return(outs or ["self"])]
    return _wrapper(function, signature, body, header)


def _wrapper(function: NativeFunction, signature: NativeSignature, body: list[str], header: str) -> Wrapper:
    arguments = signature.arguments()
    name = f"wrapper_{function.func.name.unambiguous_name()}"
    types = ", ".join(argument.nctype.cpp_type() for argument in arguments)
    code = [f"{_returns(signature)} {name}({', '.join(argument.defn() for argument in arguments)}) {{"]
    code += [f"  {line}" for line in body] + ["}"]
    return Wrapper(str(function.func.name), name, header, f"{_returns(signature)}({types})", "\n".join(code))


def _returns(signature: NativeSignature) -> str:
    return str(signature.returns_type().cpp_type())


def _return(values: list[str]) -> str:
    return f"return {values[0]};" if len(values) == 1 else f"return {{{', '.join(values)}}};"


def _expressions(context: list[Binding | Expr], wanted: list[Binding]) -> str:
    return ", ".join(expression.expr for expression in translate(context, wanted, method=False))


# Operators whose purpose is to join two devices; the schemas do not say so, because no in-tree kernel is checked.
ACROSS_DEVICES = frozenset({"_copy_from", "_copy_from_and_resize"})


def _device_check(function: NativeFunction) -> list[str]:
    """Upstream's check, unless TensorIterator does it."""
    if function.device_check is DeviceCheckType.NoCheck or function.func.name.name.base in ACROSS_DEVICES:
        return []
    arguments = [*function.func.arguments.out, *function.func.arguments.flat_positional]
    tensors = [argument.name for argument in arguments if argument.type.is_tensor_like()]
    if len(tensors) < 2 and not any(a.type.is_list_like() for a in arguments if a.type.is_tensor_like()):
        return []
    method = f"wrapper_mybackend_{function.func.name.unambiguous_name()}"
    return ["std::optional<c10::Device> common_device;"] + [
        f'c10::impl::check_and_update_common_device(common_device, {name}, "{method}", "{name}");' for name in tensors
    ]


def _device_guard(function: NativeFunction) -> list[str]:
    if not function.device_guard:
        return []
    arguments = function.func.arguments
    if any(isinstance(argument, TensorOptionsArguments) for argument in arguments.non_out):
        return ["const c10::DeviceGuard guard(c10::device_or_default(device));"]
    own = [arguments.self_arg.argument] if arguments.self_arg else []
    for argument in [*own, *arguments.out, *arguments.flat_positional]:
        if argument.type.is_tensor_like():
            return [f"const c10::OptionalDeviceGuard guard(at::device_of({argument.name}));"]
    return []
