"""The inference path of nn.TransformerEncoder and nn.MultiheadAttention: what torch's CPU gives, on the device."""

import pytest
import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("no_fallback")


def encoder(norm_first=False, activation="relu"):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first, activation=activation)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masks", [(), ("src",), ("padding",), ("src", "padding")], ids="+".join)
def test_an_encoder_in_evaluation_agrees_with_the_cpu(device, norm_first, activation, masks):
    model, x = encoder(norm_first, activation), torch.randn(3, 10, 32)
    lengths = torch.tensor([10, 4, 7])
    padding = torch.arange(10) >= lengths[:, None]
    options = {}
    if "src" in masks:
        options["mask"] = torch.ones(10, 10, dtype=torch.bool).triu(1)
    if "padding" in masks:
        options["src_key_padding_mask"] = padding
    with torch.no_grad():
        expected = model(x, **options)
        ours = model.to(device)(x.to(device), **{key: value.to(device) for key, value in options.items()})
    # What the padding becomes is not defined: the CPU may drop it and fill with zeros.
    real = ~padding if "padding" in masks else torch.ones_like(padding)
    torch.testing.assert_close(ours.cpu()[real], expected[real], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("one_input", [False, True])
def test_attention_in_evaluation_agrees_with_the_cpu(device, need_weights, average, one_input):
    torch.manual_seed(0)
    model = nn.MultiheadAttention(32, 4, batch_first=True).eval()
    inputs = [torch.randn(2, 6, 32)] * 3 if one_input else list(torch.randn(3, 2, 6, 32))
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    options = dict(need_weights=need_weights, average_attn_weights=average)
    moved = [inputs[0].to(device)] * 3 if one_input else [x.to(device) for x in inputs]
    for mask in (None, padding):
        with torch.no_grad():
            out, weights = model.cpu()(*inputs, key_padding_mask=mask, **options)
            ours, our_weights = model.to(device)(
                *moved, key_padding_mask=None if mask is None else mask.to(device), **options
            )
        torch.testing.assert_close(ours.cpu(), out, rtol=1e-4, atol=1e-5)
        assert (our_weights is None) == (weights is None)
        if weights is not None:
            torch.testing.assert_close(our_weights.cpu(), weights, rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit_are_refused_in_upstreams_words(device):
    x, weight, bias = (torch.zeros(shape, device=device) for shape in ((2, 3, 8), (24, 8), (24,)))
    with pytest.raises(RuntimeError, match="`embed_dim` must divide evenly by `num_heads`"):
        torch._native_multi_head_attention(x, x, x, 8, 3, weight, bias, weight[:8], bias[:8])
    with pytest.raises(RuntimeError, match="expected `qkv_weight` first dim to be 3x embed_dim"):
        torch._native_multi_head_attention(x, x, x, 8, 2, weight[:16], bias, weight[:8], bias[:8])
