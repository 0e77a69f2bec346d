"""Pointwise code that reads across its rows goes in tiles: the same values, for every shape, dtype and view."""

from __future__ import annotations

import pytest
import torch
from torch._inductor.utils import run_and_get_code


@pytest.fixture
def tiled(device, agree):
    """tiled(function, *arguments): as `agree`, and the code is in tiles."""

    def check(function, *arguments, **options) -> None:
        agree(function, *arguments, **options)
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, dynamic=options.get("dynamic"))
        _, (code,) = run_and_get_code(compiled, *(a.to(device) for a in arguments))
        assert "MB_TILED" in code

    return check


def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.t() + y


@pytest.mark.parametrize("shape", [(64, 64), (33, 70), (17, 129), (200, 16), (16, 300), (1000, 257)])
def test_a_transposed_matrix_is_added(tiled, shape):
    tiled(added, torch.randn(shape), torch.randn(shape[::-1]))


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.int16, torch.uint8],
)
def test_every_size_of_element_is_turned(tiled, dtype):
    x, y = (torch.randint(0, 100, shape).to(dtype) for shape in ((70, 90), (90, 70)))
    tiled(added, x, y)


def test_booleans_are_turned(tiled):
    tiled(lambda x, y: x.t() & y, torch.rand(70, 90) > 0.5, torch.rand(90, 70) > 0.5)


@pytest.mark.parametrize("rows", [16, 24, 33, 8])
def test_a_tile_may_go_on_into_the_next_matrix_of_a_batch(tiled, rows):
    tiled(lambda x: x.transpose(1, 2).contiguous() * 2, torch.randn(5, 40, rows))


def test_a_tensor_in_channels_last_meets_a_contiguous_one(tiled):
    x = torch.randn(3, 20, 10, 12).to(memory_format=torch.channels_last)
    tiled(lambda x, y: x.contiguous() * y, x, torch.randn(3, 20, 10, 12))


def test_several_inputs_are_turned(tiled):
    tiled(lambda x, y, z: x.t() * y.t() + z + x.t(), torch.randn(50, 70), torch.randn(50, 70), torch.randn(70, 50))


def test_a_broadcast_and_an_index_stand_beside_what_is_turned(tiled):
    i = torch.randint(0, 30, (70,))
    x, y, w = torch.randn(50, 70), torch.randn(70, 50), torch.randn(30)
    tiled(lambda x, y, w, i: x.t() * w[i][:, None] + y * w[:1], x, y, w, i)


def test_what_is_read_under_a_mask_is_not_turned(agree):
    agree(lambda x: torch.nn.functional.pad(x.t(), (3, 2)) + 1, torch.randn(50, 70))


def test_memory_that_is_written_is_not_turned(agree):
    def update(x, y):
        y.add_(x.t())
        return y

    agree(update, torch.randn(50, 70), torch.randn(70, 50))


def test_sizes_may_be_dynamic(device):
    compiled = torch.compile(added, fullgraph=True, dynamic=True)
    for shape in ((3, 5), (70, 64), (200, 129)):
        x, y = torch.randn(shape), torch.randn(shape[::-1])
        torch.testing.assert_close(compiled(x.to(device), y.to(device)).cpu(), added(x, y))


def test_gradients_of_a_permutation(agree):
    agree(lambda x: x.permute(0, 2, 3, 1).contiguous().tanh() * 2, torch.randn(2, 30, 8, 9), grad=True)
