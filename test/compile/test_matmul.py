"""Matrix products, convolutions and attention: called from compiled code, with what follows them fused."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend


def test_a_product_with_its_epilogue(agree):
    agree(lambda x, w: (x @ w).relu() + 1, torch.randn(33, 70), torch.randn(70, 16), grad=True, rtol=1e-4, atol=1e-4)


def test_a_linear_layer_with_gelu(agree):
    x, w, b = torch.randn(33, 70), torch.randn(16, 70), torch.randn(16)
    agree(lambda x, w, b: F.gelu(F.linear(x, w, b)), x, w, b, grad=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("depth", [1, 20])
def test_what_is_multiplied_by_a_beta_of_zero_is_not_read(agree, depth):
    a, b, c = torch.randn(16, depth), torch.randn(depth, 24), torch.full((24,), float("nan"))
    for alpha in (1, 2):
        agree(lambda a, b, c, alpha=alpha: torch.addmm(c, a, b, beta=0, alpha=alpha).relu() + 1, a, b, c)


def test_a_batched_product(agree):
    agree(lambda a, b: torch.bmm(a, b).softmax(-1), torch.randn(3, 9, 7), torch.randn(3, 7, 5), rtol=1e-4, atol=1e-5)


def test_convolution(agree):
    x, w, b = torch.randn(2, 3, 12, 13), torch.randn(4, 3, 3, 3), torch.randn(4)
    agree(lambda x, w, b: F.conv2d(x, w, b, padding=1).relu(), x, w, b, grad=True, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention(agree, masked, dynamic):
    q, k, v = (torch.randn(2, 3, 11, 70) for _ in range(3))
    mask = [torch.randn(11, 11)] if masked else []

    def attention(q, k, v, *mask):
        return F.scaled_dot_product_attention(q, k, v, *mask, is_causal=len(mask) == 0)

    agree(attention, q, k, v, *mask, grad=True, dynamic=dynamic, rtol=1e-4, atol=1e-4)


def test_attention_recompiles_only_for_what_the_fused_kernels_do_not_take(device):
    counter = CompileCounterWithBackend("inductor")
    attention = torch.compile(F.scaled_dot_product_attention, backend=counter, dynamic=True, fullgraph=True)
    for shape in [(2, 3, 11, 70), (4, 5, 12, 72), (3, 2, 9, 300), (2, 6, 8, 310)]:
        q, k, v = (torch.randn(shape) for _ in range(3))
        result = attention(*(x.to(device) for x in (q, k, v)))
        torch.testing.assert_close(result.cpu(), F.scaled_dot_product_attention(q, k, v), rtol=1e-4, atol=1e-4)
    assert counter.frame_count == 2


def test_a_product_tuned_by_measuring(agree):
    options = {"max_autotune": True}
    agree(lambda x, w: (x @ w).tanh(), torch.randn(33, 70), torch.randn(70, 16), options=options, rtol=1e-4, atol=1e-4)
