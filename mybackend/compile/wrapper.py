"""The generated Python module that calls the kernels: one C++ source for all kernels of a graph, calls, allocations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V as virtualized

__all__ = ["SubgraphWrapper", "Wrapper"]

V: Any = virtualized
DEVICE = "mybackend"


@dataclass(frozen=True)
class DefinedKernel:
    name: str
    source: str
    plan: tuple[Any, ...]
    comment: str


class _Calls(PythonWrapperCodegen):
    """What a graph's wrapper and a subgraph's have in common."""

    def root(self) -> Wrapper:
        raise NotImplementedError

    def add_kernel(self, name: str, source: str, plan: tuple[Any, ...], comment: str) -> None:
        self.root().kernels.append(DefinedKernel(name, source, plan, comment))

    def _generate_kernel_call_helper(
        self, kernel_name: str, call_args: Any, *, device: Any = None, triton: bool = True, **options: Any
    ) -> Any:
        device = device or V.graph.get_current_device_or_throw()
        if device.type != DEVICE or triton:
            return super()._generate_kernel_call_helper(kernel_name, call_args, device=device, triton=triton, **options)
        arguments = ", ".join([str(device.index), *map(str, self.prepare_triton_kernel_call(call_args))])
        self.writeline(f"{kernel_name}({arguments})")

    def lay_out_result(self, name: str, size: Any, stride: Any) -> None:
        self.root().lays_out = True
        size_text, stride_text = map(self.codegen_python_shape_tuple, (size, stride))
        self.writeline(f"{name} = laid_out({name}, {size_text}, {stride_text})")

    def make_allocation(
        self, name: str, device: Any, dtype: Any, shape: Any, stride: Any, allocation_shape: Any = None,
        is_pinned: bool = False,
    ) -> Any:  # fmt: skip
        if device.type != DEVICE:
            return super().make_allocation(name, device, dtype, shape, stride, allocation_shape, is_pinned)
        allocated = shape if allocation_shape is None else allocation_shape
        shape_text, allocated_text, stride_text = map(self.codegen_python_shape_tuple, (shape, allocated, stride))
        self.root().allocates = True
        text = f"{name} = empty_strided_mybackend({allocated_text}, {stride_text}, {dtype}, {device.index})"
        return text if shape_text == allocated_text else f"{text}.as_strided({shape_text}, {stride_text})"


class Wrapper(_Calls):
    def __init__(self) -> None:
        self.kernels: list[DefinedKernel] = []
        self.allocates = False
        self.lays_out = False
        super().__init__()

    @staticmethod
    def create(is_subgraph: bool, subgraph_name: Any, parent_wrapper: Any, partition_signatures: Any = None) -> Any:
        if is_subgraph:
            return SubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)
        return Wrapper()

    def root(self) -> Wrapper:
        return self

    def generate_return(self, output_refs: list[str]) -> None:
        """All kernels are known when the return statement is written, and the header has not been taken yet."""
        if self.allocates:
            self.imports.writeline("from mybackend._C import empty_strided as empty_strided_mybackend")
        if self.lays_out:
            self.imports.writeline("from mybackend.compile.runtime import laid_out")
        if self.kernels:
            self.imports.writeline("from mybackend.compile.runtime import load_kernels")
            self.header.writeline("")
            self.header.writeline("compiled_kernels = load_kernels(r'''")
            self.header.splice("\n".join(kernel.source for kernel in self.kernels))
            self.header.writeline("''')")
            for kernel in self.kernels:
                self.header.splice(f"\n{kernel.comment}")
                self.header.writeline(f"{kernel.name} = compiled_kernels.kernel({kernel.name!r}, *{kernel.plan!r})")
        super().generate_return(output_refs)


class SubgraphWrapper(SubgraphPythonWrapperCodegen, _Calls):
    def root(self) -> Wrapper:
        root = self.get_root_graph()
        assert isinstance(root, Wrapper)
        return root
