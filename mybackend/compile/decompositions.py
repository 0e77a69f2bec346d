"""Decompositions of Inductor's that are not good for this device. Each says why."""

from __future__ import annotations

import functools
from typing import Any

import torch

__all__ = ["install"]

aten = torch.ops.aten


def install() -> None:
    """Changes Inductor's table, and the copy of it that the first graph makes, if there has been one."""
    from torch._inductor.decomposition import decompositions, fast_random_decomps

    copies = [fast_random_decomps()] if fast_random_decomps.cache_info().currsize else []
    operator = aten.max_pool2d_with_indices_backward.default
    for table in (decompositions, *copies):
        if operator in table:  # torch 2.11 has none
            table[operator] = _as_a_gather(table[operator])


def _as_a_gather(original: Any) -> Any:
    """The gradient of max pooling stays an operator, whose lowering gathers for each input from its few windows.

    The decomposition scatters, by atomic addition and into the contiguous format whatever the input's was: nothing of
    that vectorises, and the gradients of a batch norm before it then read one operand across the other.
    """

    @functools.wraps(original)
    def max_pool2d_with_indices_backward(grad_output: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if grad_output.device.type == "mybackend":
            return NotImplemented
        return original(grad_output, *args, **kwargs)

    return max_pool2d_with_indices_backward
