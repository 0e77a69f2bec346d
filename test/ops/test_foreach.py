"""Operators over lists of tensors agree with torch's CPU, on the fast route and off it."""

import pytest
import torch
from torch.testing._internal.common_methods_invocations import (
    foreach_binary_op_db,
    foreach_other_op_db,
    foreach_pointwise_op_db,
    foreach_reduce_op_db,
    foreach_unary_op_db,
)

OPS = [
    *foreach_unary_op_db,
    *foreach_binary_op_db,
    *foreach_pointwise_op_db,
    *foreach_reduce_op_db,
    *foreach_other_op_db,
]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.bool, torch.complex64]
# The CPU rounds the scalars that go with half types to their dtype, and adds up float in another order.
TOLERANCES = {
    torch.float32: dict(rtol=1e-5, atol=1e-5, equal_nan=True),
    torch.float16: dict(rtol=2e-3, atol=8e-3, equal_nan=True),
    torch.complex32: dict(rtol=2e-3, atol=8e-3, equal_nan=True),
    torch.bfloat16: dict(rtol=2e-2, atol=3e-2, equal_nan=True),
}
OTHERWISE = dict(rtol=1e-6, atol=1e-6, equal_nan=True)
SHAPES = [(3,), (64, 65), (0,), (), (40, 5, 70), (70_001,)]


def lists(count, dtype=torch.float32, shapes=SHAPES):
    random = torch.Generator().manual_seed(0)
    return [[torch.randn(shape, generator=random).to(dtype) for shape in shapes] for _ in range(count)]


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(item, device) for item in value)
    return value


def outcome(function, *args, **kwargs):
    """The result, or the kind of error."""
    try:
        return function(*args, **kwargs)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        return type(error)


def check(function, args, kwargs, device):
    here = moved(args, device)
    want, got = outcome(function, *args, **kwargs), outcome(function, *here, **kwargs)
    if isinstance(want, type) or isinstance(got, type):
        # The CPU computes a few things that accelerators do not, and the other way round; none is silently wrong.
        assert isinstance(want, type) or got is not TypeError, (want, got)
        return
    if want is None:  # in place
        want, got = args[0], here[0]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.device.type == torch.device(device).type and g.stride() == w.stride()
        torch.testing.assert_close(g.cpu(), w, **TOLERANCES.get(w.dtype, OTHERWISE))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_operator_agrees_with_the_cpu(op, dtype, device):
    if dtype not in op.supported_dtypes("cpu"):
        return
    samples = list(op.sample_inputs("cpu", dtype, noncontiguous=False, allow_higher_dtype_scalars=True))
    for sample in samples[:: max(1, len(samples) // 12)]:
        kwargs = {name: value for name, value in sample.kwargs.items() if not isinstance(value, torch.Tensor)}
        if op.method_variant is not None:
            check(op.method_variant, [sample.input, *sample.args], kwargs, device)
        if op.inplace_variant is not None:
            check(op.inplace_variant, [[t.clone() for t in sample.input], *sample.args], kwargs, device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.complex64], ids=str)
def test_lists_off_the_fast_route_agree_with_the_cpu(device, dtype):
    a, b = lists(2, dtype, [(6, 4), (5, 8)])
    for left, right in [
        ([t.t() for t in a], [t.t().contiguous() for t in b]),  # strides differ
        (a, [t.double() if not t.is_complex() else t for t in b]),  # dtypes differ
        ([t[:, ::2] for t in a], [t[:, ::2] for t in b]),  # not dense
    ]:
        for function in (torch._foreach_add, torch._foreach_mul):
            want, got = function(left, right), function(moved(left, device), moved(right, device))
            for g, w in zip(got, want, strict=True):
                torch.testing.assert_close(g.cpu(), w)


def test_lists_longer_than_a_kernel_argument_are_cut(device):
    many = [torch.full((n % 7,), float(n), device=device) for n in range(3000)]
    for n, t in enumerate(torch._foreach_add(many, [float(n) for n in range(3000)])):
        assert t.tolist() == [2.0 * n] * (n % 7)


def test_an_operation_in_place_raises_versions_as_on_the_cpu(device):
    x = torch.ones(3, device=device)
    before = x._version
    torch._foreach_mul_([x], 2.0)
    assert x._version == before + 1


def test_a_saved_tensor_changed_in_place_is_found_by_backward(device):
    w = torch.ones(3, device=device, requires_grad=True)
    y = w * 1
    z = (y * y).sum()
    torch._foreach_add_([y], 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_functional_operators_differentiate(device):
    def gradients(where):
        leaves = [t.to(where).requires_grad_() for t in lists(1, shapes=[(3,), (4, 5)])[0]]
        out = torch._foreach_mul(torch._foreach_exp(leaves), 0.5)
        sum(t.sum() for t in torch._foreach_norm(out, 2)).backward()
        return [t.grad.cpu() for t in leaves]

    torch.testing.assert_close(gradients(device), gradients("cpu"))


@pytest.mark.parametrize("order", [1, 2, float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_norms_agree_with_a_sum_in_double(device, dtype, order):
    (x,) = lists(1, dtype, [(3,), (70_001,), (300, 300), ()])
    for norm, t in zip(torch._foreach_norm(moved(x, device), order), x, strict=True):
        want = torch.linalg.vector_norm(t.double(), order).to(dtype)
        assert norm.dtype == dtype
        torch.testing.assert_close(
            norm.cpu(), want, rtol=2e-6 if dtype == torch.float32 else None, atol=0 if dtype == torch.float32 else None
        )


def test_a_norm_does_not_depend_on_threads_or_on_the_other_tensors(device):
    (x,) = lists(1, shapes=[(200_001,), (7,)])
    here = moved(x, device)
    threads = torch.get_num_threads()
    try:
        alone = torch._foreach_norm(here[:1], 2)[0]
        torch.set_num_threads(3)
        assert torch.equal(torch._foreach_norm(here[::-1], 2)[1], alone)
    finally:
        torch.set_num_threads(threads)


def test_nan_wins_in_norm_and_maximum(device):
    x = torch.ones(50_000, device=device)
    x[40_000] = torch.nan
    assert torch._foreach_norm([x], float("inf"))[0].isnan()
    assert torch._foreach_max([x])[0].isnan()


def test_copy_converts_between_lists_of_different_dtypes(device):
    (source,) = lists(1)
    target = [torch.empty(t.shape, dtype=torch.bfloat16, device=device) for t in source]
    torch._foreach_copy_(target, moved(source, device))
    torch.testing.assert_close(moved(target, "cpu"), [t.bfloat16() for t in source])
    torch._foreach_copy_(target, source)  # from the CPU
    torch.testing.assert_close(moved(target, "cpu"), [t.bfloat16() for t in source])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch._foreach_add(x, x + x),
        lambda x: torch._foreach_add(x, [1.0]),
        lambda x: torch._foreach_neg([t > 0 for t in x]),
        lambda x: torch._foreach_sub(x, True),
        lambda x: torch._foreach_max([torch.empty(0, device=x[0].device)]),
    ],
)
def test_errors_are_those_of_the_cpu(call, device):
    (x,) = lists(1, shapes=[(3,), (4,)])
    with pytest.raises((RuntimeError, TypeError)) as want:
        call(x)
    with pytest.raises(want.type) as got:
        call(moved(x, device))
    assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]
