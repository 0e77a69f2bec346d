"""Wrappers that Inductor may be asked for and that do not exist for this device: making one says so."""

from __future__ import annotations

from typing import Any

from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.virtualized import V as virtualized

__all__ = ["NoCppWrapper", "NoFxWrapper"]

V: Any = virtualized


class NoCppWrapper(PythonWrapperCodegen):
    @staticmethod
    def create(*args: Any, **kwargs: Any) -> Any:
        if V.graph.aot_mode:
            raise NotImplementedError(
                "mybackend does not support AOTInductor (torch._inductor.aoti_compile_and_package): use torch.compile"
            )
        raise NotImplementedError("mybackend does not support torch._inductor.config.cpp_wrapper: leave it False")


class NoFxWrapper(PythonWrapperCodegen):
    @staticmethod
    def create(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("mybackend does not support torch._inductor.config.fx_wrapper: leave it False")
