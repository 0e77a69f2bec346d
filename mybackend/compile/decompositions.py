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
    changes = {aten.max_pool2d_with_indices_backward.default: _as_a_gather, aten.addmm.default: _without_a_bias_of_zero}
    for table in (decompositions, *copies):
        for operator, changed in changes.items():
            if operator in table:  # torch 2.11 has none for max pooling
                table[operator] = changed(table[operator])


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


def _without_a_bias_of_zero(original: Any) -> Any:
    """Where beta is 0 a bias is not read, and its NaN do not spread.

    A pass of Inductor's for GPUs takes the sum from the product, so that it is fused with what follows, and multiplies
    the bias by 0.
    """

    @functools.wraps(original)
    def addmm(self: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if self.device.type == "mybackend" and isinstance(beta, (int, float)) and beta == 0:
            product = torch.mm(mat1, mat2)
            return product if alpha == 1 else product * alpha
        return original(self, mat1, mat2, beta=beta, alpha=alpha)

    return addmm
