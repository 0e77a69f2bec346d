"""dtypes beyond the ordinary ones in compiled code: float8 is fused, complex numbers are moved, else called."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch._inductor import metrics
from torch.torch_version import TorchVersion

FLOAT8 = [
    torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu,
]  # fmt: skip
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


@pytest.mark.parametrize("dtype", FLOAT8)
def test_every_bit_pattern_of_an_8_bit_float_is_read(agree, dtype):
    every = torch.arange(256, dtype=torch.uint8).view(dtype)
    agree(lambda x: (x.float(), x.to(torch.bfloat16)), every, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_floats_round_to_8_bits_as_in_eager_code(agree, dtype):
    """Every exponent and leading mantissa, each with what follows at, just below and just above a tie."""
    high = torch.arange(-(2**15), 2**15, dtype=torch.int32) << 16
    x = torch.cat([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(torch.float32)
    agree(lambda x: (x * 1).to(dtype).view(torch.uint8), x, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_a_round_trip_through_8_bits_loses_what_it_loses_in_eager_code(agree, dtype):
    agree(lambda x: (x * 3).to(dtype).float() + 1, torch.randn(33, 70).abs())


@pytest.mark.parametrize("dtype", FLOAT8)
def test_memory_of_8_bit_floats_is_moved(agree, dtype):
    # A NaN stays one, but not its payload: only the NaN that conversions give is in here.
    bits = torch.arange(256, dtype=torch.uint8).view(dtype).float().to(dtype).view(torch.uint8).reshape(16, 16)

    def function(bits):
        x = bits.view(dtype)
        moved = (x.t().contiguous(), torch.cat([x, x], 1), x[[3, 1]], x.clone())
        return tuple(tensor.view(torch.uint8) for tensor in moved)

    agree(function, bits)


def test_quantisation_by_the_largest_value_is_fused_with_its_inverse(agree):
    def function(x):
        scale = x.abs().amax(-1, keepdim=True) / 448
        stored = (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        return stored.view(torch.uint8), stored.float() * scale, scale

    agree(function, torch.randn(33, 70))


@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_integers_are_converted_moved_and_summed(agree, dtype):
    x = torch.randint(0, 60000, (33, 70)).to(dtype)
    agree(lambda x: (x.to(torch.int64) * 2, x.double() / 3, x.t().contiguous(), torch.cat([x, x]), x.sum()), x)
    agree(lambda x: (x * 100).abs().to(dtype), torch.randn(33, 70))


def changed_in_place(z, x):
    z.mul_(2).add_(x)
    return z, z.imag + x


COMPLEX = {
    "arithmetic": lambda z, x: (z * x + z.conj() / 2, z - 1j, -z, z**2),
    "functions": lambda z, x: (z.exp(), z.tanh(), z.sqrt(), z.abs() * x, z.angle() + x),
    "parts": lambda z, x: (z.real * 2 + z.imag, torch.view_as_real(z) * x.unsqueeze(-1), z.isfinite()),
    "construction": lambda z, x: (torch.complex(x * 2, x + 1), torch.polar(x.abs(), x), (x * 2).to(z.dtype) + 1),
    "selection": lambda z, x: (torch.where(x > 0, z, 0), z.masked_fill(x > 0, 1j), torch.cat([z, z * 2]), z[[2, 0]]),
    "layout": lambda z, x: (z.t().contiguous(), F.pad(z * 2, (1, 2)), z.flip(0), z.tril(), z.repeat(2, 1)),
    "reductions": lambda z, x: (z.sum(1), (z * x).mean(), z.prod(0), z.cumsum(0), z.abs().amax(), z.any()),
    "comparison": lambda z, x: ((z == z.flip(0)) | (x > 0), z != 0, z.bool()),
    "products": lambda z, x: ((z @ z.mT) * 2, (z @ z.mT).abs().sum()),
    "transforms": lambda z, x: (torch.fft.fft(x * 2).abs() + x, torch.fft.irfft(torch.fft.rfft(x) * 2, n=7) + x),
    "padded transforms": lambda z, x: (
        torch.fft.fft2(z, s=(8, 9)),
        torch.fft.ifft(z * 2, n=9),
        F.pad(z, (1, 2), value=1.5),
    ),
    "in place": changed_in_place,
}


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_beside_fused_code(agree, name, dtype):
    z = torch.randn(5, 7, dtype=dtype)
    agree(COMPLEX[name], z, torch.randn(5, 7, dtype=z.real.dtype), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128], ids=str)
def test_memory_of_complex_numbers_is_moved_by_kernels(agree, dtype):
    metrics.reset()
    z = torch.randn(70, 33, dtype=torch.complex128).to(dtype)

    def function(z):
        moved = (torch.diagonal_scatter(z, z[0]), torch.diagonal_scatter(z.t(), z[1], offset=1).contiguous())
        return tuple(torch.view_as_real(tensor) for tensor in moved)

    agree(function, z, rtol=0, atol=0)
    assert metrics.generated_kernel_count > 0


@pytest.mark.xfail(
    TorchVersion(torch.__version__) < "2.12", reason="torch 2.11 cannot compile a complex constant", strict=True
)
def test_gradients_through_complex_numbers(agree):
    agree(lambda x: (torch.fft.rfft(x * 2) * 1j).abs().square() + 1, torch.randn(5, 8), grad=True, rtol=1e-5, atol=1e-4)


def test_complex_memory_is_written_through_views_before_it_is_read(agree):
    def function(z, x):
        w = z.t().clone()
        w.diagonal().copy_(x)
        return w.contiguous(), torch.diagonal_scatter(z.t(), x, offset=1).contiguous()

    agree(function, torch.randn(70, 33, dtype=torch.complex64), torch.randn(33, dtype=torch.complex64), rtol=0, atol=0)


@pytest.mark.parametrize("function", [
    lambda z: z * 2 + z.imag,
    lambda z: z.t().contiguous(),
    lambda z: torch.cat([z, z.conj(), (z * 2).conj()]),
    lambda z: torch.diagonal_scatter(z, z[:, 0]),
], ids=["arithmetic", "transposition", "concatenation", "scatter"])  # fmt: skip
def test_a_conjugated_input_is_read_as_it_is(device, function):
    z = torch.randn(5, 7, dtype=torch.complex64)
    actual = torch.compile(function, fullgraph=True)(z.to(device).conj())
    torch.testing.assert_close(actual.cpu().resolve_conj(), function(z.conj()).resolve_conj())
