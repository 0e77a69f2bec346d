"""Choosing a template or the operator's call, and the nodes of Inductor's graph that stand for a template.

Without `max_autotune` nothing is measured: the template is used with its first set of parameters where it is preferred.
With it, Inductor's autotuner measures the call and every set of parameters, and keeps what it found in its cache.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._inductor import config, ir
from torch._inductor import lowering as inductor
from torch._inductor.runtime import benchmarking
from torch._inductor.select_algorithm import ExternKernelCaller, ExternKernelChoice, autotune_select_algorithm
from torch._inductor.virtualized import V as virtualized

from mybackend.compile import runtime, toolchain
from mybackend.compile.c_types import STORED
from mybackend.compile.template import Template, signature_of
from mybackend.compile.template_kernel import TemplateCall, TemplateKernel

__all__ = ["TemplateBuffer", "TemplateChoice", "can_measure", "choose", "lower_operator", "realized"]

V: Any = virtualized
DEVICE = "mybackend"


class TemplateBuffer(ir.TemplateBuffer):
    """The result of a template; Scheduling.codegen_template asks it for a kernel."""

    def __init__(self, call: TemplateCall) -> None:
        super().__init__(call.layout, list(call.tensors().values()), None)
        self.call = call

    def kernel(self, fused: Sequence[Any]) -> TemplateKernel:
        return TemplateKernel(self.call, self.get_name(), fused)


class TemplateChoice(ir.ChoiceCaller):
    """One set of parameters. `finish` makes the operator's result of the template's, with what will be fused."""

    def __init__(
        self, call: TemplateCall, input_nodes: Sequence[Any], finish: Callable[[Any], Any] | None = None
    ) -> None:
        described = ", ".join(f"{name}={value}" for name, value in call.parameters.items())
        super().__init__(f"template_{call.template.name}", list(input_nodes), call.layout, described)
        self.call, self.finish = call, finish

    def output_node(self) -> Any:
        node = ir.TensorBox.create(TemplateBuffer(self.call))
        return node if self.finish is None else self.finish(node)

    # -- measuring

    @functools.cached_property
    def source(self) -> str:
        self.kernel = TemplateKernel(self.call, "template_result", ())
        return self.kernel.generate(())

    @functools.cached_property
    def compiled(self) -> runtime.Kernels:
        return runtime.load_kernels(self.source.replace("KERNEL_NAME", "mb_template"))

    def precompile(self) -> None:
        self.compiled.path()

    def benchmark(self, *args: torch.Tensor, out: torch.Tensor) -> float:
        """Milliseconds; `args` are the memory of the input nodes, of each buffer once."""
        compiled = self.compiled.kernel("mb_template", *self.kernel.signature.launch_plan())
        names = list(dict.fromkeys(node.get_name() for node in self.input_nodes))
        tensors = {**dict(zip(names, args, strict=True)), "template_result": out}
        hint = V.graph.sizevars.optimization_hint
        arguments = [
            tensors[argument] if isinstance(argument, str) and argument in tensors else hint(argument)
            for argument in self.kernel.arguments("mb_template")[0]
        ]
        index = out.device.index
        return float(benchmarking.benchmarker.benchmark(lambda: compiled(index, *arguments), (), {}, device=DEVICE))

    def hash_key(self) -> str:
        return f"{self.name}-{self.description}-{toolchain.compiler().key(self.source)}"

    def call_name(self) -> str:
        return str(self.name)

    def info_dict(self) -> dict[str, Any]:
        return {"backend": DEVICE, **self.call.parameters}

    def __str__(self) -> str:
        return f"TemplateChoice({self.name}, {self.description})"


class OperatorCall(ExternKernelCaller):
    """The operator called as it is: what a template is measured against."""

    def __init__(self, choice: ExternKernelChoice, nodes: Sequence[Any], layout: Any, make: Callable[[], Any]) -> None:
        super().__init__(choice, list(nodes), layout, has_out_variant=False)
        self.make = make

    def output_node(self) -> Any:
        return self.make()


def can_measure() -> bool:
    """torch 2.11 has no way to measure on a device it does not know."""
    return (config.max_autotune or config.max_autotune_gemm) and hasattr(benchmarking, "register_benchmarker")


def choose(name: str, choices: list[ir.ChoiceCaller], nodes: Sequence[Any], layout: Any) -> Any:
    """The fastest choice's result, measured in this process: another would have to be sent what only this one has."""
    elsewhere = {"autotune_in_subproc": False, "pipeline_max_autotune_gemm": False}
    with config.patch({name: value for name, value in elsewhere.items() if hasattr(config, name)}):
        chosen = autotune_select_algorithm(name, choices, list(nodes), layout, return_multi_template=False)
    return chosen[0] if isinstance(chosen, tuple) else chosen


def realized(x: Any) -> Any:
    """The tensor in memory, with a layout that will not change: a buffer or a view of one."""
    x = ir.ExternKernel.realize_input(x)
    while isinstance(x, (ir.TensorBox, ir.StorageBox)):
        x = x.data
    if isinstance(x.get_layout(), ir.FlexibleLayout):
        x.freeze_layout()
    return x


def lower_operator(
    overload: torch._ops.OpOverload, template: Template, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """The lowering that register_template makes."""
    bound = signature_of(overload).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    tensors = {name: value for name, value in arguments.items() if isinstance(value, ir.TensorBox)}
    result = V.graph.current_node.meta["val"]
    if not _is_possible(tensors, result):
        return inductor.fallback_handler(overload, add_to_fallback_set=False)(*args, **kwargs)
    tensors = {name: realized(value) for name, value in tensors.items()}
    arguments |= tensors
    size, stride = map(ir.convert_shape_to_inductor, (result.shape, result.stride()))
    layout = ir.FixedLayout(result.device, result.dtype, size, stride)
    calls = [TemplateCall(template, parameters, arguments, layout) for parameters in template.parameters]
    as_call = inductor.fallback_handler(overload, add_to_fallback_set=False)
    nodes = list(tensors.values())
    if not can_measure():
        if template.prefer is None or template.prefer(calls[0].sizes()):
            return TemplateChoice(calls[0], nodes).output_node()
        return as_call(*args, **kwargs)
    choices: list[ir.ChoiceCaller] = [TemplateChoice(call, nodes) for call in calls]
    called = _called_with_tensors(overload, template, arguments)
    choices.append(OperatorCall(called, nodes, layout, lambda: as_call(*args, **kwargs)))
    return choose(template.name, choices, nodes, layout)


def _is_possible(tensors: dict[str, Any], result: Any) -> bool:
    """Whether all tensors are on the result's device, with dtypes that have a form in C++."""
    if not isinstance(result, torch.Tensor) or result.dtype not in STORED:
        return False
    return all(x.get_device() == result.device and x.get_dtype() in STORED for x in tensors.values())


def _called_with_tensors(
    overload: torch._ops.OpOverload, template: Template, arguments: dict[str, Any]
) -> ExternKernelChoice:
    """The operator as a function of its tensors, as the autotuner calls it."""
    fixed = {name: value for name, value in arguments.items() if not isinstance(value, ir.IRNode)}
    names = [name for name in arguments if name not in fixed]
    key = hashlib.sha256(f"{overload} {sorted(fixed.items())}".encode()).hexdigest()[:8]
    name = f"mybackend_{template.name}_{key}"

    def called(*tensors: torch.Tensor) -> torch.Tensor:
        given = {**fixed, **dict(zip(names, tensors, strict=True))}
        positional = [given.pop(a.name) for a in overload._schema.arguments if not a.kwarg_only]
        result = overload(*positional, **given)
        assert isinstance(result, torch.Tensor)
        return result

    return ExternKernelChoice.lookup(name) or ExternKernelChoice(called, name=name, has_out_variant=False)
