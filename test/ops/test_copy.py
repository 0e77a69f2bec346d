"""Copies keep every value whatever the strides, dtypes, devices and lazy bits on either side."""

import pytest
import torch

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.complex64,
]

LAYOUTS = {
    "dense": lambda x: x,
    "transposed": lambda x: x.t().contiguous().t(),
    "every second": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "expanded": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_a_copy_converts_as_on_the_cpu(device, no_fallback, source, to):
    x = torch.tensor([[0, 1, 2.75, 100], [3, 0.5, 7, 11]]).to(source)
    assert torch.equal(x.to(device).to(to).cpu(), x.to(to))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("given", LAYOUTS)
@pytest.mark.parametrize("wanted", ["dense", "transposed", "every second"])
def test_a_copy_follows_the_strides_of_both_sides(device, no_fallback, wanted, given, size):
    dtype = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}[size]
    x = torch.arange(130 * 71).view(130, 71).to(dtype)  # squares of the transposing kernel, and what is left of them
    source = LAYOUTS[given](x.to(device))
    target = LAYOUTS[wanted](torch.zeros_like(x, device=device))
    assert torch.equal(target.copy_(source).cpu(), LAYOUTS[given](x))


def test_a_copy_to_another_device_and_back_is_the_same(device):
    other = f"mybackend:{(torch.device(device).index + 1) % torch.mybackend.device_count()}"
    x = torch.randn(40, 50, device=device)
    for moved in (x.to(other), x.t().to(other).t(), x.to(other, torch.float64)):
        assert moved.device == torch.device(other)
        assert torch.equal(moved.to(device, torch.float32), x)


@pytest.mark.parametrize("place", ["cpu", "device"])
def test_lazily_conjugated_and_negated_tensors_arrive_resolved_or_flagged(device, place):
    x = torch.randn(5, 7, dtype=torch.complex64)
    to = device if place == "device" else "cpu"
    for lazy in (lambda t: t.conj(), lambda t: t.conj().imag, lambda t: t.t().conj()):
        assert torch.equal(lazy(x.to(device)).clone().to(to).cpu(), lazy(x))
        assert torch.equal(lazy(x.to(device)).to(to).cpu(), lazy(x))


def test_a_copy_of_another_shape_is_refused_in_upstreams_words(device):
    with pytest.raises(RuntimeError) as theirs:
        torch.zeros(2).copy_(torch.zeros(3))
    with pytest.raises(RuntimeError) as ours:
        torch.zeros(2, device=device).copy_(torch.zeros(3, device=device))
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,)])
def test_empty_and_scalar_tensors_are_copied(device, shape):
    x = torch.ones(shape)
    assert torch.equal(x.to(device).clone().cpu(), x)


FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
@pytest.mark.parametrize("other", [torch.float32, torch.bfloat16, torch.float8_e5m2], ids=str)
def test_float8_is_converted_as_on_the_cpu(device, dtype, other):
    values = torch.tensor([[0.5, 1, 2, 100], [3, 4, 7, 0.25]])
    expected = values.to(dtype)
    ours = values.to(device).to(dtype)
    assert torch.equal(ours.cpu().view(torch.uint8), expected.view(torch.uint8))
    assert torch.equal(ours.t().contiguous().cpu().view(torch.uint8), expected.t().contiguous().view(torch.uint8))
    assert torch.equal(ours.t().to(other).cpu().float(), expected.t().to(other).float())


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_float8_tensors_are_made_filled_and_padded_as_on_the_cpu(device, dtype):
    def results(where):
        strided = torch.ones(4, 3, dtype=dtype, device=where)
        strided[:, 1].fill_(3.1)
        made = [torch.full((3,), 2.7, dtype=dtype, device=where), torch.full_like(strided, float("nan"))]
        return [*made, strided, strided.new_zeros(2), torch.cat([strided, strided]), strided[[2, 0]]]

    for ours, theirs in zip(results(device), results("cpu"), strict=True):
        assert torch.equal(ours.cpu().view(torch.uint8), theirs.view(torch.uint8))
