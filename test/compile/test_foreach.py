"""Operators over lists of tensors are one launch: `_foreach_` operators, optimizers, and what `combo_kernels` joins."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.utils._pytree import tree_map

SHAPES = [(3,), (), (64, 33), (257,), (1, 5), (2000,), (0, 4), (16, 16)]


def launches(code: list[str]) -> int:
    """Calls of our kernels in generated modules."""
    return sum(len(re.findall(r"^ +mb_\w+\(\d+, ", module, re.MULTILINE)) for module in code)


def compiled(function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[Any, int]:
    result, code = run_and_get_code(torch.compile(function, fullgraph=True, **options), *arguments)
    return tree_map(lambda x: x.cpu() if isinstance(x, Tensor) else x, result), launches(code)


def tensors(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    random = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=random).to(dtype) for shape in shapes]


def to(device: str, values: list[Tensor]) -> list[Tensor]:
    return [value.to(device) for value in values]


def update(xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
    return torch._foreach_add(torch._foreach_mul(xs, ys), 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32])
def test_a_list_of_any_shapes_is_one_launch(device, dtype):
    xs, ys = tensors(*SHAPES, dtype=dtype), tensors(*SHAPES, dtype=dtype)
    result, count = compiled(update, to(device, xs), to(device, ys))
    torch.testing.assert_close(result, update(xs, ys))
    assert count == 1


def test_views_of_other_strides_are_segments_of_the_same_launch(device):
    xs = [torch.randn(20, 30).t(), torch.randn(5, 6, 7).permute(2, 0, 1), torch.randn(50)[::2]]
    moved = [x.to(device) for x in (torch.randn(20, 30), torch.randn(5, 6, 7), torch.randn(50))]
    ours = [moved[0].t(), moved[1].permute(2, 0, 1), moved[2][::2]]
    for mine, theirs in zip(ours, xs, strict=True):
        mine.copy_(theirs)
    result, count = compiled(lambda xs: torch._foreach_exp(torch._foreach_add(xs, 1)), ours)
    torch.testing.assert_close(result, [(x + 1).exp() for x in xs])
    assert count <= 2


def test_lists_are_changed_in_place(device):
    def step(xs: list[Tensor], ys: list[Tensor]) -> None:
        torch._foreach_add_(xs, ys, alpha=0.5)
        torch._foreach_mul_(xs, 3)

    xs, ys = tensors(*SHAPES), tensors(*SHAPES)
    ours = to(device, xs)
    _, count = compiled(step, ours, to(device, ys))
    step(xs, ys)
    torch.testing.assert_close([x.cpu() for x in ours], xs)
    assert count == 1


def test_more_arguments_than_a_launch_takes_are_a_few_launches(device):
    shapes = [(n % 50 + 1,) for n in range(700)]
    xs, ys = tensors(*shapes), tensors(*shapes)
    result, count = compiled(update, to(device, xs), to(device, ys))
    torch.testing.assert_close(result, update(xs, ys))
    assert count == 5


def test_segments_of_the_same_text_are_one_function(device):
    xs = to(device, tensors(*[(n + 2,) for n in range(50)]))
    _, code = run_and_get_code(torch.compile(lambda xs: torch._foreach_sqrt(torch._foreach_abs(xs))), xs)
    assert len(re.findall(r"MB_SEGMENT \w+\(", code[0])) == 1


def test_sizes_may_be_dynamic(device):
    function = torch.compile(update, fullgraph=True, dynamic=True)
    for n in (5, 300, 1000):
        xs, ys = tensors((n, 3), (n,), (7, n)), tensors((n, 3), (n,), (7, n))
        result = function(to(device, xs), to(device, ys))
        torch.testing.assert_close([x.cpu() for x in result], update(xs, ys))


def parameters(device: str, count: int) -> list[Tensor]:
    shapes = [(16, 16), (16,), (33, 7), (40,)] * (count // 4)
    return [p.to(device).requires_grad_() for p in tensors(*shapes)]


# How an optimizer is made, of how many parameters, and the most launches its step may take.
OPTIMIZERS: dict[str, tuple[Callable[[list[Tensor]], torch.optim.Optimizer], int, int]] = {
    "SGD": (lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, weight_decay=0.01), 100, 1),
    "Adam": (lambda ps: torch.optim.Adam(ps, lr=0.01), 12, 2),
    "AdamW": (lambda ps: torch.optim.AdamW(ps, lr=0.01), 100, 3),
    "RMSprop": (lambda ps: torch.optim.RMSprop(ps, lr=0.01), 12, 2),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_compiled_step_is_a_few_launches(device, name):
    make, count, most = OPTIMIZERS[name]
    theirs, ours = parameters("cpu", count), parameters(device, count)
    reference, optimizer = make(theirs), make(ours)
    step = torch.compile(optimizer.step)
    random = torch.Generator().manual_seed(1)
    counts = []
    for _ in range(2):
        for mine, their in zip(ours, theirs, strict=True):
            their.grad = torch.randn(their.shape, generator=random)
            mine.grad = their.grad.to(device)
        reference.step()
        _, code = run_and_get_code(step)
        counts.append(launches(code))
    torch.testing.assert_close([p.cpu() for p in ours], theirs, rtol=1e-4, atol=1e-5)
    assert 0 < max(counts) <= most


def test_gradients_are_clipped_as_on_the_cpu(device):
    theirs, ours = parameters("cpu", 40), parameters(device, 40)
    random = torch.Generator().manual_seed(1)
    for mine, their in zip(ours, theirs, strict=True):
        their.grad = torch.randn(their.shape, generator=random)
        mine.grad = their.grad.to(device)

    def clip(parameters: list[Tensor]) -> Tensor:
        return torch.nn.utils.clip_grad_norm_(parameters, 1.0)

    norm, code = run_and_get_code(torch.compile(clip), ours)
    torch.testing.assert_close(norm.cpu(), clip(theirs))
    torch.testing.assert_close([p.grad.cpu() for p in ours], [p.grad for p in theirs])
    assert launches(code) <= 3


def independent(x: Tensor, y: Tensor, i: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return x.sin(), y.softmax(-1), (y * 2).sum(0), x[:50].cos() * 3, w[i], y.amax(1)


def test_combo_kernels_join_kernels_of_every_form(device):
    arguments = torch.randn(5000), torch.randn(70, 40), torch.randint(0, 9, (12,)), torch.randn(9, 6)
    moved = [a.to(device) for a in arguments]
    _, apart = compiled(independent, *moved)
    torch._dynamo.reset()
    result, joined = compiled(independent, *moved, options={"combo_kernels": True})
    torch.testing.assert_close(result, independent(*arguments))
    assert joined < apart


def test_an_index_out_of_bounds_in_a_segment_raises(device):
    arguments = torch.randn(5000), torch.randn(70, 40), torch.tensor([3, 9]), torch.randn(9, 6)
    function = torch.compile(independent, options={"combo_kernels": True})
    with pytest.raises(IndexError):
        function(*(a.to(device) for a in arguments))
        torch.mybackend.synchronize()
