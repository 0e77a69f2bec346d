"""Reads and writes at computed places: gathers, scatters, embeddings. An index out of bounds is a Python error."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F


def test_embedding(agree):
    agree(lambda w, i: F.embedding(i, w) * 2, torch.randn(50, 8), torch.randint(0, 50, (4, 9)), grad=True)


def test_negative_indices_count_from_the_end(agree):
    agree(lambda x, i: x[i] + 1, torch.randn(33, 70), torch.tensor([-1, 0, 5, -33]))


def test_gather_and_scatter(agree):
    x, i = torch.randn(33, 70), torch.randint(0, 70, (33, 70))
    agree(lambda x, i: torch.zeros_like(x).scatter_add(1, i, x).gather(1, i), x, i, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8]
)
def test_accumulation_into_the_same_place(agree, dtype):
    x = torch.zeros(40, 70, dtype=dtype)
    i, ones = torch.randint(0, 40, (200,)), torch.ones(200, 70, dtype=dtype)
    agree(lambda x, i, v: x.index_put((i,), v, accumulate=True), x, i, ones)


def test_an_index_inside_a_masked_expression(agree):
    x, i = torch.randn(10, 20), torch.randint(0, 10, (7,))
    agree(lambda x, i: F.pad(x[i], (1, 2), value=1.0), x, i)


@pytest.mark.parametrize("bad", [50, -51, 2**40])
def test_an_index_out_of_bounds_raises_and_the_process_goes_on(device, bad):
    compiled = torch.compile(lambda x, i: x[i] * 2, fullgraph=True)
    x = torch.randn(50, 8, device=device)
    with pytest.raises(IndexError, match="is out of bounds for dimension with size 50"):
        compiled(x, torch.tensor([0, bad, 3], device=device))
        torch.mybackend.synchronize()
    good = compiled(x, torch.tensor([0, 49, 3], device=device))
    torch.testing.assert_close(good, x[[0, 49, 3]] * 2)


@pytest.mark.parametrize("width", [1, 8])
def test_an_index_that_is_a_position_is_checked(device, width):
    def embed(w, x):
        return F.embedding(torch.arange(x.shape[0], device=x.device), w) + x

    compiled = torch.compile(embed, fullgraph=True, dynamic=True)
    w = torch.randn(50, width)
    for length in (9, 50):
        x = torch.randn(length, width)
        torch.testing.assert_close(compiled(w.to(device), x.to(device)).cpu(), embed(w, x))
    with pytest.raises(IndexError, match="is out of bounds for dimension with size 50"):
        compiled(w.to(device), torch.zeros(60, width, device=device))
        torch.mybackend.synchronize()


def test_an_assertion_in_compiled_code_raises_its_message(device):
    def function(x):
        torch._assert_async((x > 0).all(), "every x is positive")
        return x + 1

    compiled = torch.compile(function, fullgraph=True)
    compiled(torch.ones(4, device=device))
    with pytest.raises(RuntimeError, match="every x is positive"):
        compiled(-torch.ones(4, device=device))
        torch.mybackend.synchronize()


def test_a_gradient_scattered_to_a_place_that_is_a_sum_of_terms(agree):
    x = torch.randn(2, 1, 6, 3)
    agree(lambda x: F.max_pool2d(x * 2, 3, 2, 1, return_indices=True), x, grad=False)
    agree(lambda x: F.max_pool2d(x * 2, 3, 2, 1), x, grad=True)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_many_items_add_to_few_places(device, threads, dtype):
    """In pieces on several cores, which need atomic additions, and in one piece, which does not."""
    index, values = torch.arange(14_000) % 7, torch.ones(14_000, 4, dtype=dtype)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compiled = torch.compile(lambda i, v: v.new_zeros(7, 4).index_add(0, i, v), fullgraph=True)
        result = compiled(index.to(device), values.to(device)).cpu()
    finally:
        torch.set_num_threads(before)
    assert torch.equal(result, torch.full((7, 4), 2000, dtype=dtype))
