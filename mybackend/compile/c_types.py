"""dtypes in generated code: how a dtype is stored, what it is computed in, and how a constant of it is written."""

from __future__ import annotations

import math

import torch

__all__ = ["COMPLEX", "FLOAT8", "LOW_PRECISION", "STORED", "c_constant", "c_type", "compute_dtype", "stored_type"]

# What is too large for float8_e4m3fn became NaN once, and becomes the largest number in newer torch.
_SATURATES = bool(torch.tensor(1e9).to(torch.float8_e4m3fn).float().isfinite())

STORED: dict[torch.dtype, str] = {
    torch.bool: "bool",
    torch.int8: "mb_i8",
    torch.uint8: "mb_u8",
    torch.int16: "short",
    torch.uint16: "mb_u16",
    torch.int32: "int",
    torch.uint32: "mb_u32",
    torch.int64: "mb_i64",
    torch.uint64: "mb_u64",
    torch.float16: "mb_f16",
    torch.bfloat16: "mb_bf16",
    torch.float32: "float",
    torch.float64: "double",
    torch.float8_e4m3fn: "mb_f8e4m3fn" if _SATURATES else "mb_f8e4m3fn_overflowing",
    torch.float8_e5m2: "mb_f8e5m2",
    torch.float8_e4m3fnuz: "mb_f8e4m3fnuz",
    torch.float8_e5m2fnuz: "mb_f8e5m2fnuz",
    torch.float8_e8m0fnu: "mb_f8e8m0fnu",
}
# Moved, not computed with: what computes with complex numbers is called.
COMPLEX = {torch.complex32: "mb_c32", torch.complex64: "mb_c64", torch.complex128: "mb_c128"}
FLOAT8 = tuple(dtype for dtype in STORED if dtype.is_floating_point and dtype.itemsize == 1)
LOW_PRECISION = (torch.float16, torch.bfloat16, *FLOAT8)


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """16- and 8-bit floating-point numbers are loaded into float and rounded when stored."""
    return torch.float32 if dtype in LOW_PRECISION else dtype


def stored_type(dtype: torch.dtype) -> str:
    """The C++ type of an element in memory. Raises NotImplementedError for a dtype of which no code is generated."""
    stored = STORED.get(dtype) or COMPLEX.get(dtype)
    if stored is None:
        raise NotImplementedError(f"mybackend.compile generates no code for {dtype}")
    return stored


def c_type(dtype: torch.dtype) -> str:
    """The C++ type values of `dtype` are computed in."""
    return stored_type(compute_dtype(dtype))


def c_constant(value: bool | int | float | complex, dtype: torch.dtype) -> str:
    dtype = compute_dtype(dtype)
    if dtype in COMPLEX:
        number, part = complex(value), dtype.to_real()
        # The parts of a complex32 are in their stored form.
        real, imaginary = (
            f"mb_to<{stored_type(part)}>::from({c_constant(x, part)})" for x in (number.real, number.imag)
        )
        return f"{COMPLEX[dtype]}{{{real}, {imaginary}}}"
    assert not isinstance(value, complex), f"mybackend.compile: the constant {value} of {dtype}"
    if dtype == torch.bool:
        return "true" if value else "false"
    if dtype.is_floating_point:
        value = float(value)
        if math.isnan(value):
            text = "MB_NAN"
        elif math.isinf(value):
            text = "MB_INF" if value > 0 else "-MB_INF"
        elif dtype == torch.float32:
            return repr(value) + "f" if abs(value) < 3.4e38 else f"float({value!r})"
        else:
            return repr(value)
        return f"{c_type(dtype)}({text})"
    value = int(value)
    if dtype == torch.uint64:
        return f"{value % 2**64}ull"
    if value == -(2**63):
        return "mb_i64(0x8000000000000000ull)"
    if dtype == torch.int32 and value != -(2**31):
        return str(value)
    return f"{c_type(dtype)}({value}ll)"
