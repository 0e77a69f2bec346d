"""What traced operators return, where upstream does not know it of this device.

The cells of a GRU are fused where a device says so, and the CPU's are not: upstream has no meta functions of them.
Torch 2.11 has none of the gradient of attention by a backend outside torch.

Fakes of convolutions ask ATen for the memory format of the backend it would choose. For a device outside torch that is
"overrideable", of which nothing is known but the contiguous format; the host driver's library chooses as on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._decomp import meta_table
from torch._subclasses import fake_impls
from torch.utils._pytree import tree_leaves, tree_map

import mybackend

__all__ = ["install"]

aten = torch.ops.aten


def install() -> None:
    for operator, meta in METAS.items():
        if operator not in meta_table:
            fake_impls.op_implementations_dict[operator] = _of_fakes(meta)
    for operator in (aten.convolution.default, aten.convolution_backward.default):
        original = fake_impls.op_implementations_dict[operator]
        fake_impls.op_implementations_dict[operator] = _laid_out_as_on_the_cpu(original)


def _laid_out_as_on_the_cpu(original: Any) -> Any:
    def convolution(fake_mode: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        device = next(leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)).device
        if device.type != "mybackend" or mybackend.driver() != "host":
            return original(fake_mode, operator, *args, **kwargs)

        def moved(value: Any, to: torch.device) -> Any:
            if not isinstance(value, Tensor):
                return value
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=to)

        with fake_mode:
            on_cpu = tree_map(lambda value: moved(value, torch.device("cpu")), (args, kwargs))
            result = original(fake_mode, operator, *on_cpu[0], **on_cpu[1])
            return tree_map(lambda value: moved(value, device), result)

    return convolution


def _of_fakes(meta: Callable[..., Any]) -> Any:
    def fake(fake_mode: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        with fake_mode:
            return meta(*args, **kwargs)

    return fake


def _gru_cell(
    input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    rows, hidden = hx.shape
    return torch.empty_like(hx, memory_format=torch.contiguous_format), hx.new_empty(rows, hidden * 5)


def _gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    rows, hidden = grad_hy.shape
    gates = [workspace.new_empty(rows, hidden * 3) for _ in range(2)]
    biases = [workspace.new_empty(hidden * 3) if has_bias else None for _ in range(2)]
    grad_hx = torch.empty_like(grad_hy, memory_format=torch.contiguous_format)
    return gates[0], gates[1], grad_hx, biases[0], biases[1]


def _attention_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, *_: Any, **__: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    grad_bias = None if attn_bias is None else torch.empty_like(attn_bias)
    return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), grad_bias


METAS: dict[Any, Callable[..., Any]] = {
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
    aten._scaled_dot_product_fused_attention_overrideable_backward.default: _attention_backward,
}
