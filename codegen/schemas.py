"""What the installed torch knows of its operators: torchgen's model of native_functions.yaml, asked a few questions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torchgen
from torchgen.gen import get_grouped_native_functions, parse_native_yaml
from torchgen.model import BackendIndex, BackendMetadata, DispatchKey, NativeFunction, NativeFunctionsGroup

ATEN = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"


@dataclass(frozen=True)
class Operator:
    """One entry an operators file can have: an overload, or the structured group it is the out= variant of."""

    name: str
    function: NativeFunction
    group: NativeFunctionsGroup | None  # set for structured groups only

    @property
    def functions(self) -> list[NativeFunction]:
        return list(self.group.functions()) if self.group else [self.function]


class Schemas:
    def __init__(self, aten: Path = ATEN) -> None:
        parsed = parse_native_yaml(str(aten / "native_functions.yaml"), str(aten / "tags.yaml"))
        self._indices: dict[DispatchKey, BackendIndex] = parsed.backend_indices
        self._functions: list[NativeFunction] = parsed.native_functions

    @cached_property
    def operators(self) -> dict[str, Operator]:
        """Every operator by name. Members of a structured group other than its out= variant are not operators."""
        found = {}
        for item in get_grouped_native_functions(self._functions):
            if isinstance(item, NativeFunctionsGroup) and item.structured:
                found[str(item.out.func.name)] = Operator(str(item.out.func.name), item.out, item)
                continue
            members = item.functions() if isinstance(item, NativeFunctionsGroup) else [item]
            for function in members:
                found[str(function.func.name)] = Operator(str(function.func.name), function, None)
        return found

    @cached_property
    def group_of(self) -> dict[str, str]:
        """Member of a structured group -> the name the group has as an operator."""
        return {
            str(function.func.name): operator.name
            for operator in self.operators.values()
            for function in operator.functions
        }

    def kernel(self, operator: Operator, key: DispatchKey) -> BackendMetadata | None:
        return self._indices[key].get_kernel(operator.group or operator.function)

    def shared_kernel(self, operator: Operator) -> BackendMetadata | None:
        """The implementation that upstream uses for CPU and CUDA alike, if there is one."""
        cpu, cuda = self.kernel(operator, DispatchKey.CPU), self.kernel(operator, DispatchKey.CUDA)
        return cpu if cpu and cuda and cpu.kernel == cuda.kernel else None

    def has_cpu_kernel(self, operator: Operator) -> bool:
        return self.kernel(operator, DispatchKey.CPU) is not None

    def is_composite(self, operator: Operator) -> bool:
        return any(function.has_composite_kernel for function in operator.functions)

    def is_composite_implicit(self, operator: Operator) -> bool:
        return any(function.has_composite_implicit_autograd_kernel for function in operator.functions)

    @cached_property
    def _differentiable(self) -> frozenset[str]:
        formulas = ATEN.parent.parent / "autograd" / "derivatives.yaml"
        return frozenset(re.findall(r"^- name: ([\w.]+)\(", formulas.read_text(), re.MULTILINE))

    def has_derivative(self, operator: Operator) -> bool:
        """Whether autograd has a formula, which takes over once a backend has a kernel (e.g. _fused_rms_norm)."""
        return operator.name in self._differentiable
