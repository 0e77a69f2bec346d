"""Every write into torch.*, each with the torch in which it may go.

A patch is applied only where torch still lacks what it adds, so it ends by itself.
"""

import functools

import torch

__all__ = ["apply"]


def apply() -> None:
    dlpack_device()


def dlpack_device() -> None:
    """Tensor.__dlpack_device__ compares the device type with the literal "privateuse1", which no renamed backend has.

    Needed until torch compares with the renamed name (pull request 195815); torch 2.11 to 2.13 lack it.
    """
    original = torch.Tensor.__dlpack_device__

    @functools.wraps(original)
    def __dlpack_device__(self: torch.Tensor) -> tuple[int, int]:
        if self.device.type != "mybackend":
            return original(self)
        from torch.utils.dlpack import DLDeviceType

        return DLDeviceType.kDLExtDev, self.device.index

    torch.Tensor.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]
