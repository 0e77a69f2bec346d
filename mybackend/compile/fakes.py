"""What a traced convolution on the host driver returns, as the eager one does.

Fakes of convolutions ask ATen for the memory format of the backend it would choose. For a device outside torch that is
"overrideable", of which nothing is known but the contiguous format; the host driver's library chooses as on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import fake_impls
from torch.utils._pytree import tree_leaves, tree_map

import mybackend

__all__ = ["install"]

aten = torch.ops.aten


def install() -> None:
    for operator in (aten.convolution.default, aten.convolution_backward.default):
        original = fake_impls.op_implementations_dict[operator]
        fake_impls.op_implementations_dict[operator] = _laid_out_as_on_the_cpu(original)


def _laid_out_as_on_the_cpu(original: Any) -> Any:
    def convolution(fake_mode: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        device = next(leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)).device
        if device.type != "mybackend" or mybackend.driver() != "host":
            return original(fake_mode, operator, *args, **kwargs)

        def moved(value: Any, to: torch.device) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=to)

        with fake_mode:
            on_cpu = tree_map(lambda value: moved(value, torch.device("cpu")), (args, kwargs))
            result = original(fake_mode, operator, *on_cpu[0], **on_cpu[1])
            return tree_map(lambda value: moved(value, device), result)

    return convolution
