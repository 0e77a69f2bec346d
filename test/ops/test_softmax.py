"""softmax and log_softmax against torch CPU: any dimension, any dtype, values at the edges, gradients."""

import math

import pytest
import torch

from mybackend.testing import cases, check_backward, check_forward

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NAMES = frozenset({"softmax", "log_softmax", "nn.functional.softmin", "nn.functional.cross_entropy"})
pytestmark = pytest.mark.usefixtures("no_fallback")

FUNCTIONS = [torch.softmax, torch.log_softmax]


@pytest.mark.parametrize("case", cases(FLOATS, NAMES - {"nn.functional.cross_entropy"}), ids=str)
def test_results_equal_those_of_the_cpu(device, case):
    check_forward(case, device)


@pytest.mark.parametrize(
    "case", cases((torch.float32, torch.float64), NAMES - {"nn.functional.cross_entropy"}), ids=str
)
def test_gradients_equal_those_of_the_cpu(device, case):
    check_backward(case, device)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("shape, dim", [((), 0), ((0, 3), 1), ((3, 0), 0), ((5,), 0), ((1, 1), 1), ((4, 1000), -1)])
def test_any_shape_is_accepted(device, function, shape, dim):
    x = torch.randn(shape)
    torch.testing.assert_close(function(x.to(device), dim).cpu(), function(x, dim))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_every_dimension_of_a_strided_input_agrees(device, function, dim):
    x = torch.randn(7, 200, 5).transpose(0, 1)
    torch.testing.assert_close(function(x.to(device), dim).cpu(), function(x, dim))


@pytest.mark.parametrize("dim", [0, 1])
def test_infinities_and_nan_spread_as_on_the_cpu(device, dim):
    x = torch.tensor(
        [[1.0, -math.inf, 2.0], [-math.inf] * 3, [math.inf, 0.0, 1.0], [math.nan, 1.0, 2.0], [1e30, -1e30, 0.0]]
    )
    for function in FUNCTIONS:
        torch.testing.assert_close(function(x.to(device), dim).cpu(), function(x, dim), equal_nan=True)


def test_large_magnitudes_do_not_overflow(device):
    x = torch.tensor([[1000.0, 1001.0], [-1000.0, -1001.0]])
    torch.testing.assert_close(torch.softmax(x.to(device), 1).cpu(), torch.softmax(x, 1))


def test_half_input_can_give_a_float_result(device):
    x = torch.randn(5, 70, dtype=torch.float16)
    for dim in (0, 1):
        ours = torch.ops.aten._softmax(x.to(device), dim, True)
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.cpu(), torch.softmax(x.float(), dim))
        grad = torch.randn(5, 70)
        back = torch.ops.aten._softmax_backward_data(grad.to(device), ours, dim, torch.float16)
        assert back.dtype == torch.float16


def test_result_may_be_written_over_the_input(device):
    x = torch.randn(6, 33)
    for dim in (0, 1):
        ours = x.to(device)
        torch.softmax(ours, dim, out=ours)
        torch.testing.assert_close(ours.cpu(), torch.softmax(x, dim))


def test_a_strided_result_is_filled(device):
    x, out = torch.randn(6, 33), torch.empty(33, 6, device=device).t()
    torch.ops.aten._softmax.out(x.to(device), 1, False, out=out)
    torch.testing.assert_close(out.cpu(), torch.softmax(x, 1))


def test_results_do_not_depend_on_the_number_of_threads(device):
    x = torch.randn(512, 300, device=device)
    several = torch.softmax(x, 0), torch.softmax(x, 1)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = torch.softmax(x, 0), torch.softmax(x, 1)
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(several, one, strict=True))


def test_an_integer_input_is_refused_in_upstreams_words(device):
    x = torch.ones(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="not implemented for 'Long'"):
        torch.softmax(x.to(device), 0)


@pytest.mark.parametrize("mask_type, mask_shape", [(0, (5, 5)), (1, (2, 5)), (2, (2, 3, 5, 5))])
def test_masked_softmax_hides_what_the_mask_names(device, mask_type, mask_shape):
    x, mask = torch.randn(2, 3, 5, 5), torch.rand(mask_shape) < 0.4
    expected = torch._masked_softmax(x, mask, 3, mask_type)
    ours = torch._masked_softmax(x.to(device), mask.to(device), 3, mask_type)
    torch.testing.assert_close(ours.cpu(), expected, equal_nan=True)
