"""cat, triangles, flip, roll and relatives: what torch's CPU gives."""

import pytest
import torch

from mybackend.testing import cases, check_backward, check_forward

OPERATORS = """
    cat stack hstack vstack dstack tril triu tril_indices triu_indices flip fliplr flipud roll rot90 repeat
    repeat_interleave tile unfold constant_pad_nd nn.functional.pad.constant nn.functional.pad.circular diag
    diagonal diag_embed block_diag nn.functional.pixel_shuffle nn.functional.pixel_unshuffle split chunk
    meshgrid.variadic_tensors nn.functional.one_hot unfold_copy
"""
NAMES = frozenset(OPERATORS.split())
OTHERS = (torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)


@pytest.mark.parametrize("case", list(cases((torch.float32, *OTHERS), NAMES)), ids=str)
def test_an_operator_gives_what_the_cpu_gives(device, case):
    check_forward(case, device, limit=4)


@pytest.mark.parametrize("case", list(cases((torch.float64,), NAMES)), ids=str)
def test_an_operator_differentiates_as_on_the_cpu(device, case):
    check_backward(case, device, limit=3)


X = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
CALLS = {
    "the first dimension": lambda x: torch.cat([x, x[:1], x]),
    "the last dimension": lambda x: torch.cat([x[..., :1], x, x[..., 3:]], -1),
    "a hundred tensors": lambda x: torch.cat([x[:, i % 3 : i % 3 + 1] for i in range(100)], 1),
    "several dtypes": lambda x: torch.cat([x, x.to(torch.int32), x.half()], 2),
    "channels last": lambda x: torch.cat([x.to(memory_format=torch.channels_last)] * 2, 1),
    "strided tensors": lambda x: torch.cat([x.transpose(1, 2), x.transpose(1, 2)], 1),
    "an empty 1-dim tensor": lambda x: torch.cat([torch.empty(0, device=x.device), x], 1),
    "an out= of another layout": lambda x: torch.cat(
        [x, x], out=torch.empty(5, 4, 3, 4, device=x.device).permute(3, 2, 1, 0)
    ),
    "upper triangle in place": lambda x: x.triu_(1),
    "lower triangle of a transposed tensor": lambda x: x.transpose(2, 3).tril(-1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_the_cpu_gives(device, name):
    ours, theirs = CALLS[name](X.clone().to(device)), CALLS[name](X.clone())
    assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
    assert torch.equal(ours.cpu(), theirs)


def test_cat_of_other_sizes_is_rejected_in_upstreams_words(device):
    with pytest.raises(RuntimeError, match="Sizes of tensors must match except in dimension 0"):
        torch.cat([torch.ones(2, 3, device=device), torch.ones(2, 4, device=device)])
