"""Every write into torch.*, each with the torch in which it may go.

A patch is applied only where torch still lacks what it adds, so it ends by itself.
"""

import functools
from collections.abc import Callable
from enum import IntEnum
from types import CodeType

import torch

from mybackend import _C

__all__ = ["apply"]


def apply() -> None:
    dlpack_device()
    module_conversion()
    pointwise_associative_scan()


def dlpack_device() -> None:
    """Tensor.__dlpack_device__ compares the device type with the literal "privateuse1", which no renamed backend has.

    Needed until torch compares with the renamed name (pull request 195815); torch 2.11 to 2.13 lack it.
    """
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self: torch.Tensor) -> tuple[IntEnum, int]:
        if self.device.type != "mybackend":
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def module_conversion() -> None:
    """Module.to() keeps its parameters when it moves them to or from this device, as it does for CUDA.

    torch replaces each parameter by a new one where `_has_compatible_shallow_copy_type` is false, as it is between the
    CPU and any renamed backend: tied weights come apart, and an optimizer made before goes on with the old ones.
    Needed until PrivateUse1 is among torch's dense backends (or its hooks answer that question); torch is asked when a
    parameter crosses, since asking takes a tensor on the device, and importing must not use one.
    """
    original = torch.nn.Module._apply

    @functools.wraps(original)
    def _apply(
        self: torch.nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
    ) -> torch.nn.Module:
        for parameter in self._parameters.values():
            if parameter is not None and _crosses(parameter, fn):
                gradient = parameter.grad
                with torch.no_grad():
                    _C.set_data(parameter, fn(parameter))
                    if gradient is not None:
                        _C.set_data(gradient, fn(gradient))
        moved: torch.nn.Module = original(self, fn, recurse)  # type: ignore[no-untyped-call]
        return moved

    torch.nn.Module._apply = _apply  # type: ignore[method-assign]


def _crosses(parameter: torch.Tensor, fn: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether `fn` brings a plain tensor from the CPU to this device or back, for which torch makes a new parameter.

    Asked of an empty one, which is cheap.
    """
    here = parameter.device.type
    if here not in ("cpu", "mybackend") or parameter.layout is not torch.strided:
        return False
    if type(parameter.data) is not torch.Tensor:  # a fake tensor or another subclass
        return False
    empty = torch.empty(0, dtype=parameter.dtype, device=parameter.device)
    with torch.no_grad():
        there = fn(empty)
    if type(there) is not torch.Tensor or {here, there.device.type} != {"cpu", "mybackend"}:
        return False
    return not torch._has_compatible_shallow_copy_type(empty, there)


def pointwise_associative_scan() -> None:
    """associative_scan(..., combine_mode="pointwise") takes tensors of this device, which fuses scans.

    The list of devices is a constant in a function within the function, which Dynamo traces: so the constant is
    replaced. Needed until that list asks for the backend's feature; torch 2.13 names "cuda" and "xpu".
    """
    from torch._higher_order_ops.associative_scan import associative_scan

    associative_scan.__code__ = _with_device(associative_scan.__code__)


def _with_device(code: CodeType) -> CodeType:
    """The code, and what is nested in it, with this device in the tuples of constants that have "cuda"."""

    def changed(constant: object) -> object:
        if isinstance(constant, CodeType):
            return _with_device(constant)
        if isinstance(constant, tuple) and "cuda" in constant and "mybackend" not in constant:
            return (*constant, "mybackend")
        return constant

    return code.replace(co_consts=tuple(changed(constant) for constant in code.co_consts))
