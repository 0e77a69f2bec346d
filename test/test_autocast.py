"""torch.autocast("mybackend"): operators run in upstream's precisions, casts of weights are kept for one region, and
gradients come back in the parameters' type."""

import pytest
import torch
import torch.nn.functional as F

DTYPES = [torch.bfloat16, torch.float16]


@pytest.fixture
def x(device) -> torch.Tensor:
    return torch.rand(4, 4, device=device) + 0.5


LOWER = {
    "mm": torch.mm,
    "matmul": torch.matmul,
    "bmm": lambda a, b: torch.bmm(a[None], b[None]),
    "addmm": lambda a, b: torch.addmm(a, a, b),
    "linear": F.linear,
    "einsum": lambda a, b: torch.einsum("ij,jk->ik", a, b),
    "conv2d": lambda a, b: F.conv2d(a[None, None], b[None, None]),
    "prelu": lambda a, b: F.prelu(a, b[0]),
    "sdpa": lambda a, b: F.scaled_dot_product_attention(a[None, None], b[None, None], b[None, None]),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LOWER)
def test_products_run_in_the_lower_precision(name, dtype, x):
    with torch.autocast("mybackend", dtype=dtype):
        assert LOWER[name](x, x).dtype == dtype


SINGLE = {
    "exp": torch.exp,
    "log": torch.log,
    "rsqrt": torch.rsqrt,
    "pow": lambda x: x.pow(2.5),
    "sum": torch.sum,
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "norm": torch.norm,
    "logsumexp": lambda x: x.logsumexp(0),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(4, dtype=torch.long, device=x.device)),
}


@pytest.mark.parametrize("name", SINGLE)
def test_what_needs_range_runs_in_float32(name, x):
    with torch.autocast("mybackend", dtype=torch.float16):
        assert SINGLE[name](x.half()).dtype == torch.float32


def test_operators_of_mixed_arguments_take_the_widest_type(x):
    with torch.autocast("mybackend", dtype=torch.float16):
        assert torch.addcmul(x, x.half(), x.half()).dtype == torch.float32
        assert torch.atan2(x.half(), x.half()).dtype == torch.float16


def test_other_operators_keep_their_type_and_integers_and_doubles_stay(x):
    with torch.autocast("mybackend", dtype=torch.bfloat16):
        assert F.relu(x).dtype == torch.float32 and F.relu(x.bfloat16()).dtype == torch.bfloat16
        assert torch.mm(x.double(), x.double()).dtype == torch.float64
        assert torch.mm(x.cpu(), x.cpu()).dtype == torch.float32


def test_binary_cross_entropy_is_refused_with_advice(x):
    with torch.autocast("mybackend"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x.sigmoid(), x.sigmoid())


def test_the_default_and_the_accepted_types_are_those_of_cuda(x):
    assert torch.get_autocast_dtype("mybackend") == torch.get_autocast_dtype("cuda") == torch.float16
    assert {torch.float16, torch.bfloat16} <= set(torch.mybackend.get_amp_supported_dtype())
    with pytest.warns(UserWarning, match="autocast"), torch.autocast("mybackend", dtype=torch.int32):
        assert torch.mm(x, x).dtype == torch.float32


def test_regions_nest_and_end(x):
    assert not torch.is_autocast_enabled("mybackend")
    with torch.autocast("mybackend", dtype=torch.bfloat16):
        with torch.autocast("mybackend", enabled=False):
            assert torch.mm(x, x).dtype == torch.float32
        assert torch.mm(x, x).dtype == torch.bfloat16
    assert torch.mm(x, x).dtype == torch.float32


def test_a_weight_is_cast_once_in_a_region(device):
    layer = torch.nn.Linear(8, 8).to(device)
    y = torch.rand(2, 8, device=device)
    with torch.autocast("mybackend", dtype=torch.bfloat16), torch.profiler.profile() as profile:
        layer(layer(y))
    casts = [event for event in profile.events() if event.name == "aten::_to_copy"]
    assert len(casts) == 3  # input, weight, bias; none for the second call


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_have_the_parameters_type_and_are_near_those_of_float32(dtype, device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
    model.to(device)
    y = torch.randn(6, 8).to(device)

    def gradients(enabled: bool) -> list[torch.Tensor]:
        model.zero_grad()
        with torch.autocast("mybackend", dtype=dtype, enabled=enabled):
            loss = model(y).float().square().mean()
        loss.backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    for lower, full in zip(gradients(True), gradients(False), strict=True):
        assert lower.dtype == torch.float32
        torch.testing.assert_close(lower, full, rtol=0.1, atol=0.02)
