"""Pointwise operators against the CPU: every OpInfo of the family, then what OpInfo's samples leave out."""

import pytest
import torch

from mybackend.testing.opinfo import Case, cases, check_backward, check_forward

LISTED = """
    abs acos acosh angle asin asinh atan atanh bitwise_not ceil conj_physical cos cosh deg2rad digamma erf erfc
    erfinv exp exp2 expm1 floor frac frexp i0 isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2
    logical_not logit mvlgamma.mvlgamma_p_1 mvlgamma.mvlgamma_p_3 nan_to_num neg positive rad2deg reciprocal round
    round.decimals_0 round.decimals_3 round.decimals_neg_3 rsqrt sgn sigmoid sign signbit sin sinc sinh special.entr
    special.erfcx special.i0e special.i1 special.i1e special.log_ndtr special.ndtri special.ndtr
    special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
    special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.airy_ai
    special.bessel_j1 special.bessel_y0 sqrt square tan tanh trunc add sub rsub mul div.no_rounding_mode
    div.floor_rounding div.trunc_rounding true_divide floor_divide remainder fmod pow float_power __radd__ __rdiv__
    __rmod__ __rmul__ __rpow__ __rsub__ __rand__ __ror__ __rxor__ maximum minimum fmax fmin atan2 hypot copysign
    nextafter ldexp logaddexp logaddexp2 xlogy special.xlog1py heaviside gcd lcm bitwise_and bitwise_or bitwise_xor
    bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor eq ne lt le gt ge igamma igammac
    special.zeta special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.hermite_polynomial_h
    special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p complex polar isclose
    max.binary min.binary where addcmul addcdiv lerp clamp clamp_max clamp_min nn.functional.celu nn.functional.elu
    nn.functional.gelu nn.functional.glu nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
    nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.mish nn.functional.prelu
    nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.silu nn.functional.silu.complex
    nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink
    nn.functional.threshold nn.functional.mse_loss nn.functional.smooth_l1_loss nn.functional.huber_loss
    nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits nn.functional.soft_margin_loss
    nn.functional.l1_loss
    """
NAMES = frozenset(LISTED.split())
FLOATS = (torch.float32, torch.float64)
DTYPES = (
    *FLOATS, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
    torch.complex64, torch.complex128,
)  # fmt: skip


@pytest.mark.parametrize("case", list(cases(DTYPES, NAMES)), ids=str)
def test_forward_is_that_of_the_cpu(device, no_fallback, case: Case):
    check_forward(case, device, limit=6)


@pytest.mark.parametrize("case", list(cases((*FLOATS, torch.complex128), NAMES)), ids=str)
def test_backward_is_that_of_the_cpu(device, no_fallback, case: Case):
    # digamma: the CPU's trigamma is the less accurate one, see below. sgn: of real numbers the gradient is a tensor of
    # zeros without storage, which the device does not have.
    if case.name not in ("digamma", "sgn") and case.dtype in case.op.supported_backward_dtypes("cpu"):
        check_backward(case, device, limit=3)


def same(device, f, *inputs, **tolerances):
    """f gives on the device what it gives on the CPU, for tensors and errors alike."""
    theirs = f(*inputs)
    ours = f(*(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs))
    assert ours.dtype == theirs.dtype and ours.stride() == theirs.stride()
    torch.testing.assert_close(ours.cpu(), theirs, equal_nan=True, **tolerances)


def same_error(device, f, *inputs):
    with pytest.raises(Exception) as theirs:
        f(*inputs)
    with pytest.raises(type(theirs.value)) as ours:
        f(*(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs))
        torch.mybackend.synchronize()  # a busy stream reports when it is waited for
    assert str(ours.value) == str(theirs.value)


SHAPES = {
    "empty": (torch.randn(0, 3), torch.randn(3)),
    "zero-dimensional": (torch.randn(()), torch.randn(())),
    "row": (torch.randn(5, 300), torch.randn(300)),
    "column": (torch.randn(300, 5), torch.randn(300, 1)),
    "transposed": (torch.randn(70, 90), torch.randn(90, 70).t()),
    "strided": (torch.randn(64, 64)[::2, ::3], torch.randn(32, 22)),
    "channels last": (torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last), torch.randn(2, 3, 8, 8)),
    "expanded": (torch.randn(4, 1, 6).expand(4, 5, 6), torch.randn(5, 1)),
    "odd length": (torch.randn(100_003), torch.randn(100_003)),
    "not aligned": (torch.randn(100_003)[1:], torch.randn(100_002)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_operands_of_any_layout_are_followed(device, no_fallback, shape):
    x, y = SHAPES[shape]
    same(device, torch.mul, x, y)
    same(device, torch.mul, x.to(torch.bfloat16), y.to(torch.bfloat16))
    same(device, torch.gt, x, y)
    same(device, lambda x, y: x.clone().add_(y, alpha=0.5), x.expand(torch.broadcast_shapes(x.shape, y.shape)), y)


@pytest.mark.parametrize("a", DTYPES, ids=str)
@pytest.mark.parametrize(
    "b", (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool, torch.complex64), ids=str
)
def test_mixed_types_are_promoted_inside_the_kernel(device, no_fallback, a, b):
    x, y = torch.randint(0, 5, (3, 40)).to(a), torch.randint(1, 6, (40,)).to(b)
    for f in (torch.add, torch.mul, torch.eq, torch.true_divide):
        same(device, f, x, y)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_comparisons_round_to_the_common_type_first(device, no_fallback, dtype):
    near = torch.tensor([0.1, 2048, 3.0], dtype=dtype)
    same(device, lambda x: x == 0.1, near)
    same(device, torch.eq, near, torch.tensor([0, 2049, 3]))
    same(device, torch.lt, near, torch.tensor(0.1, dtype=torch.float64))


def test_a_cpu_scalar_tensor_joins_in(device, no_fallback):
    x = torch.randn(50)
    for f in (torch.add, torch.pow, torch.maximum, torch.gt):
        theirs = f(x, torch.tensor(0.5))
        torch.testing.assert_close(f(x.to(device), torch.tensor(0.5)).cpu(), theirs, equal_nan=True)
        torch.testing.assert_close(f(torch.tensor(0.5), x.to(device)).cpu(), f(torch.tensor(0.5), x), equal_nan=True)


def test_python_numbers_keep_the_type_and_the_precision(device, no_fallback):
    for dtype in (torch.float16, torch.float32, torch.float64, torch.int32):
        x = torch.arange(1, 2000).to(dtype)
        for f in (
            lambda x: x * 3,
            lambda x: x + 1,
            lambda x: 2 - x,
            lambda x: x / 3,
            lambda x: x**2,
            lambda x: 2.5 * x,
        ):
            same(device, f, x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_special_values_pass_through_as_on_the_cpu(device, no_fallback, dtype):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([0.0, -0.0, 1, -1, 0.5, -7.25, 30, -30, 100, -100, 1e-30, 1e30, inf, -inf, nan], dtype=dtype)
    unary = (
        "exp log sqrt rsqrt tanh sigmoid erf erfc erfinv relu sin cos floor round trunc sign lgamma digamma expm1 log1p"
    )
    for name in unary.split():
        same(device, getattr(torch, name), x)
    for name in ("silu", "softplus", "mish"):
        same(device, getattr(torch.nn.functional, name), x)
    same(device, torch.nn.functional.gelu, x[x != inf])  # the CPU gives NaN for inf in float32
    a, b = x[:, None], x[None, :]
    for name in [
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "atan2",
        "pow",
        "remainder",
        "fmod",
        "floor_divide",
        "copysign",
        "hypot",
        "eq",
        "lt",
        "nextafter",
        "logaddexp",
    ]:
        same(device, getattr(torch, name), a, b)
    same(device, lambda x: x.clamp(-1, 1), x)
    same(device, lambda x: x.clamp_min(nan), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "f",
    [
        torch.digamma,
        lambda x: torch.polygamma(1, x),
        lambda x: torch.polygamma(3, x),
        torch.special.bessel_j0,
        torch.special.bessel_y1,
        torch.erfinv,
    ],
)
def test_functions_that_are_hard_in_float32_agree_with_the_cpu_in_float64(device, no_fallback, f, dtype):
    x = torch.linspace(-0.99, 8.9, 97, dtype=dtype)
    tolerance = 2e-6 if dtype == torch.float32 else 1e-6  # the CPU's Bessel functions keep 2e-7 at best
    torch.testing.assert_close(f(x.to(device)).cpu().double(), f(x.double()), rtol=tolerance, atol=1e-6, equal_nan=True)


def test_results_go_where_out_says(device, no_fallback):
    x, y = torch.randn(6, 7), torch.randn(6, 7)
    for out in (torch.empty(6, 7), torch.empty(7, 6).t(), torch.empty(6, 14)[:, ::2], torch.empty(0)):
        same(device, lambda x, y, out: torch.mul(x, y, out=out), x, y, out.to(torch.float64))


def test_integers_divided_by_zero_raise_and_the_device_goes_on(device):
    for f in (torch.floor_divide, torch.remainder, torch.fmod):
        same_error(device, f, torch.tensor([1, 2]), torch.tensor([1, 0]))
    assert (torch.ones(2, device=device) + 1).tolist() == [2, 2]


def test_the_lowest_integer_divided_by_minus_one_wraps(device, no_fallback):
    low, minus_one = torch.tensor([-(2**63)], device=device), torch.tensor([-1], device=device)
    assert torch.floor_divide(low, minus_one).tolist() == [-(2**63)]
    assert torch.remainder(low, minus_one).tolist() == [0]


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (torch.sub, (torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.bool))),
        (torch.neg, (torch.ones(2, dtype=torch.bool),)),
        (lambda x: x**-1, (torch.ones(2, dtype=torch.int64),)),
        (torch.add, (torch.ones(2), torch.ones(3))),
        (lambda x: torch.add(x, x, alpha=0.5), (torch.ones(2, dtype=torch.int64),)),
        (lambda x: torch.add(x, x, alpha=300), (torch.ones(2, dtype=torch.int8),)),
        (lambda x: x.add_(torch.ones(2, dtype=torch.complex64, device=x.device)), (torch.ones(2),)),
        (lambda x: torch.nn.functional.gelu(x, approximate="no"), (torch.ones(2),)),
        (torch.nn.functional.binary_cross_entropy, (torch.full((2,), 1.5), torch.ones(2))),
        (lambda x: torch.nn.functional.glu(x), (torch.ones(3),)),
    ],
)
def test_wrong_arguments_get_the_errors_of_the_cpu(device, f, inputs):
    same_error(device, f, *inputs)


def test_types_without_a_kernel_raise_not_implemented(device):
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        torch.floor_divide(torch.ones(2, dtype=torch.complex64, device=device), 2)


def test_operands_on_two_devices_are_refused(device):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(3, device=device) + torch.ones(3)


def test_results_do_not_depend_on_the_number_of_threads(device):
    x = torch.randn(1_000_003, device=device)
    before = torch.get_num_threads()
    results = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        results.append(torch.nn.functional.gelu(x * 2.0 + 1).cpu())
    torch.set_num_threads(before)
    assert torch.equal(*results)


def test_another_device_computes_too(device):
    if torch.mybackend.device_count() < 2:
        pytest.skip("one device only")
    x = torch.arange(10.0, device="mybackend:1")
    assert (x * 2 + 1).device.index == 1
    assert (x * 2 + 1).tolist() == [2.0 * i + 1 for i in range(10)]
