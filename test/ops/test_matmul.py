"""Matrix products: bit for bit what torch's CPU computes when the host driver runs them, as the same library does."""

import pytest
import torch

HOST = pytest.mark.skipif(
    "torch.mybackend.driver() != 'host'", reason="bit equality holds for the host driver's library"
)
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64]


def same(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    return ours.dtype == theirs.dtype and ours.stride() == theirs.stride() and torch.equal(ours.cpu(), theirs)


def rand(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*sizes, dtype=dtype)


CALLS = {
    "mm": (torch.mm, lambda t: (rand(5, 7, dtype=t), rand(7, 3, dtype=t))),
    "mm of transposed": (torch.mm, lambda t: (rand(7, 5, dtype=t).t(), rand(3, 7, dtype=t).t())),
    "mm of every second row": (torch.mm, lambda t: (rand(10, 7, dtype=t)[::2], rand(7, 6, dtype=t)[:, ::2])),
    "mm without a common dimension": (torch.mm, lambda t: (rand(4, 0, dtype=t), rand(0, 3, dtype=t))),
    "mm of nothing": (torch.mm, lambda t: (rand(0, 4, dtype=t), rand(4, 3, dtype=t))),
    "mm of one": (torch.mm, lambda t: (rand(1, 1, dtype=t), rand(1, 1, dtype=t))),
    "bmm": (torch.bmm, lambda t: (rand(4, 5, 6, dtype=t), rand(4, 6, 3, dtype=t))),
    "bmm of transposed": (torch.bmm, lambda t: (rand(4, 6, 5, dtype=t).mT, rand(4, 3, 6, dtype=t).mT)),
    "addmm of a row": (torch.addmm, lambda t: (rand(3, dtype=t), rand(5, 7, dtype=t), rand(7, 3, dtype=t))),
    "addmm of a matrix": (torch.addmm, lambda t: (rand(5, 3, dtype=t), rand(5, 7, dtype=t), rand(7, 3, dtype=t))),
    "addmm scaled": (
        lambda *a: torch.addmm(*a, beta=0.5, alpha=2),
        lambda t: (rand(5, 1, dtype=t), rand(5, 7, dtype=t), rand(7, 3, dtype=t)),
    ),
    "baddbmm": (torch.baddbmm, lambda t: (rand(3, dtype=t), rand(4, 5, 6, dtype=t), rand(4, 6, 3, dtype=t))),
    "addmv": (torch.addmv, lambda t: (rand(5, dtype=t), rand(5, 7, dtype=t), rand(7, dtype=t))),
    "mv": (torch.mv, lambda t: (rand(5, 7, dtype=t), rand(7, dtype=t))),
    "dot": (torch.dot, lambda t: (rand(9, dtype=t), rand(9, dtype=t))),
    "vdot": (torch.vdot, lambda t: (rand(9, dtype=t), rand(9, dtype=t))),
    "matmul with broadcast": (torch.matmul, lambda t: (rand(2, 1, 4, 5, dtype=t), rand(3, 5, 2, dtype=t))),
    "linear": (torch.nn.functional.linear, lambda t: (rand(4, 6, dtype=t), rand(3, 6, dtype=t), rand(3, dtype=t))),
    "linear of three dimensions": (
        torch.nn.functional.linear,
        lambda t: (rand(2, 4, 6, dtype=t), rand(3, 6, dtype=t), rand(3, dtype=t)),
    ),
}


@HOST
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: str(t).removeprefix("torch."))
@pytest.mark.parametrize("name", CALLS)
def test_a_product_is_the_cpus_bit_for_bit(device, no_fallback, name, dtype):
    torch.manual_seed(0)
    call, make = CALLS[name]
    inputs = make(dtype)
    assert same(call(*(t.to(device) for t in inputs)), call(*inputs))


@HOST
@pytest.mark.parametrize("n", [8, 33, 64, 300])
def test_a_larger_product_is_the_cpus_bit_for_bit(device, n):
    torch.manual_seed(0)
    a, b = rand(n, n + 3), rand(n + 3, n)
    assert same(a.to(device) @ b.to(device), a @ b)


def test_integers_multiply(device, no_fallback):
    a, b = torch.arange(6).view(2, 3), torch.arange(12).view(3, 4)
    assert torch.equal((a.to(device) @ b.to(device)).cpu(), a @ b)
    a8, b8 = torch.randint(-9, 9, (17, 32), dtype=torch.int8), torch.randint(-9, 9, (32, 8), dtype=torch.int8)
    assert torch.equal(torch._int_mm(a8.to(device), b8.to(device)).cpu(), torch._int_mm(a8, b8))


@pytest.mark.parametrize("gelu", [False, True])
def test_addmm_activation_applies_relu_or_gelu(device, no_fallback, gelu):
    torch.manual_seed(0)
    inputs = rand(3), rand(5, 7), rand(7, 3)
    ours = torch._addmm_activation(*(t.to(device) for t in inputs), use_gelu=gelu)
    torch.testing.assert_close(ours.cpu(), torch._addmm_activation(*inputs, use_gelu=gelu))


def test_a_product_is_written_in_place_and_into_out(device, no_fallback):
    torch.manual_seed(0)
    c, a, b = rand(5, 3), rand(5, 7), rand(7, 3)
    ours = c.to(device)
    ours.addmm_(a.to(device), b.to(device), beta=2)
    torch.testing.assert_close(ours.cpu(), torch.addmm(c, a, b, beta=2))
    out = torch.empty(3, 5, device=device).t()
    assert torch.mm(a.to(device), b.to(device), out=out) is out
    assert out.stride() == (1, 5)
    torch.testing.assert_close(out.cpu(), a @ b)
    empty = torch.empty(0, device=device)
    torch.mm(a.to(device), b.to(device), out=empty)
    assert empty.shape == (5, 3)


def test_a_beta_of_zero_ignores_what_the_matrix_holds(device, no_fallback):
    nan = torch.full((2, 2), float("nan"), device=device)
    ones = torch.ones(2, 2, device=device)
    assert torch.addmm(nan, ones, ones, beta=0).tolist() == [[2, 2], [2, 2]]
    assert torch.baddbmm(nan.expand(3, 2, 2), ones.expand(3, 2, 2), ones.expand(3, 2, 2), beta=0).cpu().eq(2).all()


def test_a_conjugated_operand_is_conjugated(device, no_fallback):
    a, b = rand(3, 4, dtype=torch.complex64), rand(3, 5, dtype=torch.complex64)
    torch.testing.assert_close((a.to(device).mH @ b.to(device)).cpu(), a.mH @ b)
    torch.testing.assert_close(torch.vdot(a[0].to(device), a[1].to(device)).cpu(), torch.vdot(a[0], a[1]))


def test_a_product_leaves_its_operands_alone(device):
    a, b = rand(4, 4).to(device), rand(4, 4).to(device)
    before, version = a.cpu(), a._version
    a @ b
    assert torch.equal(a.cpu(), before) and a._version == version


ERRORS = {
    "sizes": lambda d: torch.ones(2, 3, device=d) @ torch.ones(2, 3, device=d),
    "dimensions": lambda d: torch.mm(torch.ones(2, device=d), torch.ones(2, 2, device=d)),
    "dtypes": lambda d: torch.mm(torch.ones(2, 2, device=d), torch.ones(2, 2, device=d, dtype=torch.float64)),
    "batched dtypes": lambda d: torch.bmm(
        torch.ones(1, 2, 2, device=d), torch.ones(1, 2, 2, device=d, dtype=torch.float64)
    ),
    "batched bias": lambda d: torch.baddbmm(
        torch.ones(3, 2, 2, device=d), torch.ones(1, 2, 2, device=d), torch.ones(1, 2, 2, device=d)
    ),
    "bool": lambda d: torch.mm(
        torch.ones(2, 2, device=d, dtype=torch.bool), torch.ones(2, 2, device=d, dtype=torch.bool)
    ),
    "batches": lambda d: torch.bmm(torch.ones(2, 3, 4, device=d), torch.ones(3, 4, 5, device=d)),
    "bias": lambda d: torch.addmm(torch.ones(4, device=d), torch.ones(2, 3, device=d), torch.ones(3, 5, device=d)),
    "dot sizes": lambda d: torch.dot(torch.ones(2, device=d), torch.ones(3, device=d)),
    "dot dimensions": lambda d: torch.dot(torch.ones(2, 2, device=d), torch.ones(3, device=d)),
    "dot dtypes": lambda d: torch.dot(torch.ones(2, device=d), torch.ones(2, device=d, dtype=torch.float64)),
    "out dtype": lambda d: torch.mm(
        torch.ones(2, 2, device=d), torch.ones(2, 2, device=d), out=torch.ones(2, 2, device=d, dtype=torch.int32)
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_wrong_operands_get_the_cpus_error(device, name):
    with pytest.raises(RuntimeError) as theirs:
        ERRORS[name]("cpu")
    with pytest.raises(RuntimeError) as ours:
        ERRORS[name](device)
    assert str(ours.value) == str(theirs.value)


def test_operands_of_two_devices_are_refused(device):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2, 2, device=device) @ torch.ones(2, 2)


def test_a_product_runs_on_the_devices_current_stream(device):
    if torch.mybackend.device_count() < 2:
        pytest.skip("one device only")
    a, b = rand(8, 8), rand(8, 8)
    stream = torch.Stream("mybackend:1")
    with stream:
        product = a.to("mybackend:1") @ b.to("mybackend:1")
    stream.synchronize()
    assert product.device.index == 1
    torch.testing.assert_close(product.cpu(), a @ b)


def test_gradients_of_a_product_are_the_cpus(device, no_fallback):
    torch.manual_seed(0)
    leaves = [rand(3), rand(5, 7), rand(7, 3)]
    weight = rand(5, 3)

    def gradients(place: str) -> tuple[torch.Tensor, ...]:
        inputs = [t.to(place).requires_grad_() for t in leaves[1:]]
        return torch.autograd.grad(inputs[0] @ inputs[1], inputs, weight.to(place))

    for ours, theirs in zip(gradients(device), gradients("cpu"), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


def test_autocast_of_the_cpu_does_not_reach_a_product_of_the_device(device):
    a = torch.ones(4, 4, device=device)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (a @ a).dtype == torch.float32
