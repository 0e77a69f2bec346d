"""Fused pointwise code: arithmetic of every dtype, conversions, masks, layouts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.utils import run_and_get_code

import mybackend

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_chain_of_operations_is_computed_in_the_dtype_of_eager_code(agree, dtype):
    x, y = torch.randn(33, 70).to(dtype), torch.randn(33, 70).to(dtype)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    agree(lambda x, y: ((x * y + x).sigmoid() - y / 3).relu(), x, y, **tolerance)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_as_in_eager_code(agree, dtype):
    low = torch.iinfo(dtype).min if dtype != torch.int64 else -(2**40)
    high = torch.iinfo(dtype).max if dtype != torch.int64 else 2**40
    x = torch.randint(low, high, (200,), dtype=dtype)
    agree(lambda x: (x * x + x, -x, x ^ 3, x & 7, x | 1, ~x, x.abs()), x)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_shifts(agree, dtype):
    agree(lambda x: (x << 3, x >> 1), torch.randint(0, 200, (200,), dtype=dtype))


def test_booleans(agree):
    agree(lambda a, b: (a + b, a & b, a ^ b, ~a, a | b, a == b), torch.rand(50) > 0.5, torch.rand(50) > 0.5)


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
def test_division_rounds_as_asked(agree, mode):
    agree(lambda x: (torch.div(x, 7, rounding_mode=mode), x % 7, x // -3, x.fmod(5)), torch.randint(-50, 50, (100,)))
    agree(lambda x: (torch.div(x, 0.7, rounding_mode=mode), x % 0.7, x.fmod(0.7)), torch.randn(100))


def test_conversions_between_dtypes(agree):
    agree(
        lambda x: (
            x.to(torch.int32), (x * 10).to(torch.uint8), x.to(torch.bfloat16), x.to(torch.float16), x.to(torch.bool),
            x.double(), x.long() % -3,
        ),
        torch.randn(500) * 20,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_bit_pattern_of_a_16_bit_number_survives(agree, dtype):
    every = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)
    agree(lambda x: (x.float(), (x.float() * 1.0009765625).to(dtype)), every, equal_nan=True)


def test_floats_round_to_16_bits_as_in_eager_code(agree):
    x = torch.randint(-(2**31), 2**31, (20000,)).to(torch.int32).view(torch.float32)
    agree(lambda x: ((x * 1).to(torch.float16), (x * 1).to(torch.bfloat16)), x, equal_nan=True, rtol=0, atol=0)


def test_bits_are_reinterpreted(agree):
    agree(lambda x: x.view(torch.int32) + 1, torch.randn(33, 70))


UNARY = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh",
    "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "round", "frac", "erf", "erfc",
    "erfinv", "lgamma", "digamma", "sigmoid", "abs", "neg", "sign", "signbit", "isnan", "isinf", "isfinite",
    "reciprocal", "square",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unary_functions_over_their_whole_range(agree, name, dtype):
    x = torch.cat(
        [
            torch.linspace(-3, 3, 301), torch.linspace(-88, 88, 177), torch.logspace(-40, 38, 157),
            -torch.logspace(-40, 38, 57), torch.tensor([120, -120, 0.0, -0.0, torch.inf, -torch.inf, torch.nan]),
        ]
    ).to(dtype)  # fmt: skip
    agree(lambda x: getattr(torch, name)(x * 1), x, equal_nan=True)


@pytest.mark.parametrize(
    "name", ["atan2", "hypot", "copysign", "nextafter", "pow", "maximum", "minimum", "fmod", "remainder"]
)
def test_binary_functions(agree, name):
    special = torch.tensor([0.0, -0.0, 1.0, -2.5, float("inf"), -float("inf"), float("nan")])
    x, y = torch.cat([special.repeat_interleave(7), torch.randn(100)]), torch.cat([special.repeat(7), torch.randn(100)])
    agree(lambda x, y: getattr(torch, name)(x, y), x, y, equal_nan=True)


def test_padding_and_concatenation_read_nothing_outside_their_inputs(agree):
    x = torch.randn(33, 70)
    agree(lambda x: torch.cat([F.pad(x, (2, 3, 1, 0), value=7.0), x.new_zeros(1, 75)], 0), x, grad=True)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("rows", [4, 200], ids=["one kernel", "part by part"])
def test_concatenations_that_are_kept_or_used_by_pointwise_code(agree, rows, dim):
    def function(x, y):
        return torch.cat([x * 2, y.sin(), x], dim), torch.cat([x, y], dim) + 1, torch.stack([x, y + 1], dim)

    agree(function, torch.randn(rows, 30, 10), torch.randn(rows, 30, 10), grad=True)


def test_parts_of_a_large_concatenation_are_not_chosen_element_by_element(device):
    """On the host; the two halves of a rotary embedding are one loop."""

    def function(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    operands = torch.randn(64, 16, 64), torch.randn(16, 32), torch.randn(16, 32)
    actual, (source,) = run_and_get_code(torch.compile(function), *(x.to(device) for x in operands))
    torch.testing.assert_close(actual.cpu(), function(*operands))
    if mybackend.driver() == "host":
        assert source.count("MB_KERNEL ") == 1 and "if (tmp" not in source


def test_a_transposed_input(agree):
    agree(lambda x: (x.t().contiguous() + 1, x + 2), torch.randn(33, 70))


def test_broadcast_operands_of_every_shape(agree):
    a, b, c, d = torch.randn(4, 1, 30, 5), torch.randn(1, 6, 1, 5), torch.randn(5), torch.randn(4, 6, 30, 1)
    agree(lambda a, b, c, d: a * b + c - d, a, b, c, d, grad=True, rtol=1e-5, atol=1e-5)


def test_short_rows_are_walked_flat(agree):
    agree(lambda x, w: x * w + 1, torch.randn(1000, 3), torch.randn(3))


def test_a_triangle_and_a_range(agree):
    agree(lambda x: x.triu(1) + torch.arange(70, device=x.device), torch.randn(33, 70))


def test_where_and_masked_fill(agree):
    x = torch.randn(33, 70)
    agree(lambda x: torch.where(x > 0, x, x.masked_fill(x < -1, float("-inf")).exp()), x)


def test_pooling_and_interpolation(agree):
    x = torch.randn(2, 3, 33, 70)
    agree(lambda x: F.avg_pool2d(F.max_pool2d(x, 3, 2, 1), 2), x)
    agree(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), x, rtol=1e-5, atol=1e-5)


def test_an_input_is_changed_in_place(agree):
    def function(x, y):
        x.mul_(2).add_(y)
        return x, x + y

    agree(function, torch.randn(40, 9), torch.randn(40, 9))


def test_an_empty_input(agree):
    agree(lambda x: (x * 2 + 1, x.sum(), x.sum(0)), torch.randn(0, 5))


def test_relu_keeps_nan_and_the_sign_of_zero(agree):
    x = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, -1e-45, 2.5, -2.5])
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        agree(lambda x: (x.relu(), torch.signbit(x.relu())), x.to(dtype), equal_nan=True)
    agree(torch.relu, torch.tensor([-3, 0, 4]))


def test_a_chosen_value_that_is_tested_for_nan(device):
    """Which maximum comes first, with NaN: the kernel says so, since g++ must be kept from undoing its choices."""
    x = torch.randn(2, 4, 9, 9)
    x[0, 0, 3, 4], x[1, 2, 0, 0], x[1, 3] = float("nan"), float("inf"), 2.0
    function = lambda x: F.max_pool2d(x * 2, 2, return_indices=True)  # noqa: E731
    result, (code, *_) = run_and_get_code(torch.compile(function, fullgraph=True), x.to(device))
    assert "MB_TESTS_CHOICES" in code
    for ours, theirs in zip(result, function(x), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True)
