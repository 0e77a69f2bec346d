"""scaled_dot_product_attention: the fused kernels against torch CPU's decomposition, and which calls they serve."""

import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

HALVES = {torch.float16: 1e-2, torch.bfloat16: 4e-2}
pytestmark = pytest.mark.usefixtures("no_fallback")


def inputs(batch, heads, kv_heads, queries, keys, width, value_width, dtype=torch.float32, seed=0):
    """q, k, v as a model makes them: heads are the second-innermost dimension in memory."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, queries, heads, width), (batch, keys, kv_heads, width), (batch, keys, kv_heads, value_width)]
    return [torch.randn(shape, generator=generator).to(dtype).transpose(1, 2) for shape in shapes]


def attend(where, tensors, mask=None, **options):
    """The result and the gradients of q, k, v (and of a floating mask)."""
    leaves = [t.detach().to(where).requires_grad_() for t in tensors]
    bias = None if mask is None else mask.detach().to(where)
    if bias is not None and bias.is_floating_point():
        leaves.append(bias.requires_grad_())
    out = scaled_dot_product_attention(*leaves[:3], attn_mask=bias, **options)
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).to(out))
    return [out.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves)]


def fused(device, tensors, **options):
    tensors = [t.to(device) for t in tensors]
    return torch._fused_sdp_choice(*tensors, **options) == SDPBackend.OVERRIDEABLE.value


def agree(device, tensors, mask=None, rtol=1e-4, atol=1e-4, **options):
    ours = attend(device, tensors, mask, **options)
    with sdpa_kernel(SDPBackend.MATH):
        theirs = attend("cpu", [t.float() for t in tensors], mask, **options)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.float(), other, rtol=rtol, atol=atol)


# batch, heads, key heads, queries, keys, width, value width: tails of every tile, all width classes
SHAPES = [
    (1, 1, 1, 1, 1, 1, 1), (2, 4, 4, 64, 64, 32, 32), (2, 2, 2, 70, 33, 40, 24), (1, 2, 2, 5, 130, 128, 128),
    (1, 2, 2, 100, 90, 200, 256), (2, 1, 1, 1, 17, 64, 64), (1, 1, 1, 129, 65, 65, 8),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_any_shape_agrees(device, shape, causal):
    tensors = inputs(*shape)
    assert fused(device, tensors, is_causal=causal)
    agree(device, tensors, is_causal=causal)


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_are_accumulated_in_float(device, dtype):
    agree(device, inputs(2, 2, 2, 100, 90, 64, 64, dtype), rtol=HALVES[dtype], atol=HALVES[dtype])


@pytest.mark.parametrize("mask_shape", [(2, 4, 40, 50), (40, 50), (2, 1, 1, 50), (1, 4, 40, 1)], ids=str)
def test_masks_broadcast_and_a_floating_one_has_a_gradient(device, mask_shape):
    tensors = inputs(2, 4, 4, 40, 50, 16, 16)
    agree(device, tensors, torch.randn(mask_shape, generator=torch.Generator().manual_seed(1)))
    visible = torch.rand(mask_shape, generator=torch.Generator().manual_seed(1)) < 0.7
    visible[..., 0] = True
    agree(device, tensors, visible)


def test_a_query_that_sees_nothing_gets_zeros_and_no_gradient(device):
    tensors, visible = inputs(1, 1, 1, 3, 5, 8, 8), torch.ones(3, 5, dtype=torch.bool)
    visible[1] = False
    out, q, k, v = attend(device, tensors, visible)
    assert out[0, 0, 1].eq(0).all() and q[0, 0, 1].eq(0).all()
    assert all(t.isfinite().all() for t in (out, q, k, v))


def test_query_heads_share_key_heads_when_asked_to(device):
    tensors = inputs(2, 6, 2, 33, 44, 32, 32)
    assert fused(device, tensors, enable_gqa=True) and not fused(device, tensors)
    agree(device, tensors, enable_gqa=True)


def test_scale_replaces_the_default(device):
    agree(device, inputs(1, 2, 2, 20, 20, 16, 16), scale=0.5)


def test_large_scores_do_not_overflow(device):
    q, k, v = inputs(1, 1, 1, 10, 10, 16, 16)
    agree(device, [q * 100, k * 100, v], rtol=1e-3, atol=1e-3)


def test_nan_and_inf_reach_the_queries_that_see_them(device):
    q, k, v = inputs(1, 1, 1, 4, 4, 8, 8)
    k[0, 0, 2, 0] = math.nan
    out = scaled_dot_product_attention(q.to(device), k.to(device), v.to(device), is_causal=True).cpu()
    assert out[0, 0, :2].isfinite().all() and out[0, 0, 2:].isnan().all()


def test_the_result_lies_in_memory_like_the_query(device):
    q, k, v = (t.to(device) for t in inputs(2, 3, 3, 5, 5, 8, 8))
    assert scaled_dot_product_attention(q, k, v).transpose(1, 2).is_contiguous()


def test_dropout_follows_from_the_seed_and_is_the_same_in_the_backward(device):
    tensors = inputs(1, 2, 2, 64, 64, 16, 64)
    tensors[2] = torch.eye(64).expand(1, 2, 64, 64)  # the result is the weights after dropout

    def once(seed):
        torch.manual_seed(seed)
        return attend(device, tensors, dropout_p=0.25)

    first, again, other = once(7), once(7), once(8)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)) and not torch.equal(first[0], other[0])
    kept = first[0] != 0
    assert 0.7 < kept.float().mean() < 0.8
    q, k, v = (t.detach().requires_grad_() for t in tensors)
    weights = torch.softmax(q @ k.transpose(-2, -1) / 4, -1) * kept / 0.75
    out = weights @ v
    torch.testing.assert_close(first[0], out.detach(), rtol=1e-4, atol=1e-5)
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape))
    for mine, other in zip(first[1:], (q.grad, k.grad, v.grad), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-4)


def test_dropout_of_everything_is_zero(device):
    q, k, v = (t.to(device) for t in inputs(1, 1, 1, 4, 4, 8, 8))
    assert scaled_dot_product_attention(q, k, v, dropout_p=1.0).eq(0).all()


@pytest.mark.parametrize("case", ["double", "width", "three dimensions", "broadcast batch", "empty"])
def test_what_the_kernels_do_not_take_is_decomposed(device, case):
    tensors = {
        "double": lambda: [t.double() for t in inputs(1, 2, 2, 5, 6, 8, 8)],
        "width": lambda: inputs(1, 1, 1, 5, 6, 264, 8),
        "three dimensions": lambda: [t[0] for t in inputs(1, 2, 2, 5, 6, 8, 8)],
        "broadcast batch": lambda: [inputs(2, 1, 1, 5, 6, 8, 8)[0], *inputs(1, 1, 1, 5, 6, 8, 8)[1:]],
        "empty": lambda: inputs(1, 2, 2, 0, 6, 8, 8),
    }[case]()
    assert not fused(device, tensors)
    ours = scaled_dot_product_attention(*(t.to(device) for t in tensors)).cpu()
    torch.testing.assert_close(ours, scaled_dot_product_attention(*tensors), rtol=1e-4, atol=1e-5)


def test_the_math_backend_can_be_forced(device):
    tensors = inputs(1, 1, 1, 4, 4, 8, 8)
    with sdpa_kernel(SDPBackend.MATH):
        assert not fused(device, tensors)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        assert fused(device, tensors)


def test_results_do_not_depend_on_the_number_of_threads(device):
    tensors = inputs(2, 2, 2, 150, 150, 32, 32)
    several = attend(device, tensors, is_causal=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = attend(device, tensors, is_causal=True)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for a, b in zip(several, one, strict=True))
