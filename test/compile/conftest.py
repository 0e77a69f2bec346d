"""Compiled code on the device against eager code on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

Agree = Callable[..., None]


@pytest.fixture(autouse=True)
def fresh_compiler(tmp_path_factory, monkeypatch) -> Iterator[None]:
    """Every test traces anew; results of the C++ compiler are kept for the session."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def agree(device: str) -> Agree:
    """agree(function, *arguments): the compiled function on the device returns what the eager one does on the CPU.

    `grad` compares the gradients of all floating-point arguments too. `dynamic`, `fullgraph` and `options` go to
    torch.compile; `atol` and `rtol` to assert_close.
    """

    def moved(value: Any, requires_grad: bool, to: str) -> Any:
        if not isinstance(value, Tensor):
            return value
        copy = value.detach().clone().to(to)
        return copy.requires_grad_(requires_grad and value.is_floating_point())

    def check(
        function: Callable[..., Any], *arguments: Any, grad: bool = False, dynamic: bool | None = None,
        options: dict[str, Any] | None = None, **tolerance: Any,
    ) -> None:  # fmt: skip
        compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, options=options)
        theirs = tree_map(lambda value: moved(value, grad, "cpu"), arguments)
        ours = tree_map(lambda value: moved(value, grad, device), arguments)
        expected, actual = function(*theirs), compiled(*ours)
        assert all(leaf.device == torch.device(device) for leaf in tree_leaves(actual) if isinstance(leaf, Tensor))
        torch.testing.assert_close(tree_map(host, actual), expected, **tolerance)
        if grad:
            for results in (expected, actual):
                sum(leaf.sum() for leaf in tree_leaves(results) if leaf.requires_grad).backward()
            for mine, reference in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
                if isinstance(reference, Tensor) and reference.requires_grad:
                    torch.testing.assert_close(mine.grad.cpu(), reference.grad, **tolerance)

    return check


def host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, Tensor) else value
