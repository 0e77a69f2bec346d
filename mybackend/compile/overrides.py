"""Inductor's pointwise operations as C++ expressions over typed variables."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch._inductor import config
from torch._inductor.codegen.common import CSEVariable, IndentedBuffer, OpOverrides
from torch._inductor.utils import get_bounds_index_expr
from torch._inductor.virtualized import OpsValue, ops
from torch._inductor.virtualized import V as virtualized
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from mybackend.compile.c_types import FLOAT8, LOW_PRECISION, STORED, c_constant, c_type, compute_dtype, stored_type
from mybackend.compile.printer import wide_text

__all__ = ["Overrides"]

V: Any = virtualized


def _dtype(value: Any) -> torch.dtype:
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        raise AssertionError(f"mybackend.compile: {value} has no dtype")
    return compute_dtype(dtype)


def _joined(*values: Any) -> torch.dtype:
    dtypes = [
        compute_dtype(value.dtype) for value in values if isinstance(value, CSEVariable) and value.dtype is not None
    ]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = torch.promote_types(result, dtype)
    return result


def _as(value: Any, dtype: torch.dtype) -> str:
    """The operand in `dtype`: a variable of another type is converted, a Python number becomes a constant."""
    if isinstance(value, CSEVariable):
        return str(value) if value.dtype is not None and compute_dtype(value.dtype) == dtype else _cast(value, dtype)
    if isinstance(value, (bool, int, float, complex)):
        return c_constant(value, dtype)
    return f"{c_type(dtype)}({value})"


def _cast(value: Any, dtype: torch.dtype) -> str:
    return f"mb_to<{c_type(dtype)}>::from({value})"


def _unary(function: str) -> Any:
    def override(x: Any) -> str:
        return f"{function}({x})"

    return staticmethod(override)


def _binary(function: str) -> Any:
    """A function of two operands of the same type."""

    def override(x: Any, y: Any) -> str:
        dtype = _joined(x, y)
        return f"{function}({_as(x, dtype)}, {_as(y, dtype)})"

    return staticmethod(override)


def _binary_template(template: str, floating: str | None = None) -> Any:
    """A template over the type of its two operands; of floating point `floating`, where that is another function."""

    def override(x: Any, y: Any) -> str:
        dtype = _joined(x, y)
        function = floating if floating and dtype.is_floating_point else f"{template}<{c_type(dtype)}>"
        return f"{function}({_as(x, dtype)}, {_as(y, dtype)})"

    return staticmethod(override)


def _integer_or_double(expr: sympy.Expr) -> torch.dtype:
    return torch.int64 if expr.is_integer else torch.float64


def _index_variable(expr: sympy.Expr, text: str, held: torch.dtype, dtype: torch.dtype) -> Any:
    """`text`, which is `expr` computed in `held`, as a variable of `dtype`."""
    kernel = V.kernel
    variable = kernel.cse.generate(kernel.compute, text, bounds=get_bounds_index_expr(expr), dtype=held)
    return variable if held == dtype else ops.to_dtype(variable, dtype)


def _is_bool(value: Any) -> bool:
    return isinstance(value, CSEVariable) and value.dtype == torch.bool


def _truth(value: Any) -> str:
    return str(value) if _is_bool(value) else f"({value} != 0)"


def _is_small(value: Any) -> bool:
    """Whether the 64-bit integer is known to fit into 32 bits."""
    try:
        return value.dtype == torch.int64 and bool(value.bounds.lower >= -(2**31) and value.bounds.upper < 2**31)
    except (AttributeError, TypeError):
        return False


def _comparison(operator: str, of_bools: str) -> Any:
    def override(x: Any, y: Any) -> str:
        if _is_bool(x) and _is_bool(y):
            return of_bools.format(x=x, y=y)
        if _is_small(x) and _is_small(y):  # an index: its 32-bit lanes are those of the floats it chooses among
            return f"int({x}) {operator} int({y})"
        if x is y and V.kernel.chooses:
            V.kernel.tests_choices = True
        return f"{x} {operator} {y}"

    return staticmethod(override)


def _special(function: str, of: Any) -> Any:
    """A function of prelude/special.h."""
    override = of(function).__func__

    def special(*operands: Any) -> Any:
        V.kernel.uses_special_functions = True
        return override(*operands)

    return staticmethod(special)


def _fits_in_32_bits(expr: sympy.Expr) -> bool:
    bounds = bound_sympy(expr, {s: _symbol_bounds(s) for s in expr.free_symbols})
    try:
        return bool(bounds.lower >= -(2**31) and bounds.upper < 2**31)
    except TypeError:
        return False


def _symbol_bounds(symbol: sympy.Symbol) -> ValueRanges[Any]:
    entry = V.kernel.range_tree_nodes.get(symbol)
    if entry is not None and isinstance(entry.length, (int, sympy.Integer)):
        return ValueRanges(0, int(entry.length) - 1)
    return ValueRanges.unknown_int() if symbol.is_integer else ValueRanges.unknown()


class Overrides(OpOverrides):
    # -- constants, indices, conversions

    @staticmethod
    def constant(value: bool | int | float | complex, dtype: torch.dtype) -> str:
        return c_constant(value, dtype)

    @staticmethod
    def index_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        kernel = V.kernel
        prepared = kernel.prepare_indexing(expr)
        index_dtype = kernel.get_index_dtype_as_torch_dtype()
        if expr.is_integer and (index_dtype == torch.int64 or _fits_in_32_bits(prepared)):
            text, held = kernel.index_to_str(prepared), index_dtype
        else:
            text, held = wide_text(kernel.rename_indexing(prepared)), _integer_or_double(expr)
        return _index_variable(expr, text, held, dtype)

    @staticmethod
    def value_expr(expr: sympy.Expr, dtype: torch.dtype) -> Any:
        kernel = V.kernel
        text = wide_text(kernel.rename_indexing(kernel.prepare_indexing(expr)))
        return _index_variable(expr, text, _integer_or_double(expr), dtype)

    @staticmethod
    def to_dtype(
        x: Any, dtype: torch.dtype, src_dtype: torch.dtype | None = None, use_compute_types: bool = True
    ) -> str:
        if dtype in LOW_PRECISION:
            # A conversion to 8 bits is there to lose bits; one to 16 is not repeated until the value is stored.
            rounds = dtype in FLOAT8 or not use_compute_types or config.emulate_precision_casts
            return f"mb_round_to<{STORED[dtype]}>({x})" if rounds else f"float({x})"
        return _cast(x, dtype)

    @staticmethod
    def to_dtype_bitcast(x: Any, dtype: torch.dtype, src_dtype: torch.dtype) -> str:
        stored = f"mb_to<{stored_type(src_dtype)}>::from({x})"
        return f"mb_load(mb_bits<{stored_type(dtype)}>({stored}))"

    # -- control

    @staticmethod
    def masked(mask: CSEVariable, body: Any, other: Any) -> Any:
        """Nothing of the body is executed where the mask is false: its loads may be out of bounds there."""
        kernel = V.kernel
        inner = IndentedBuffer()
        with kernel.swap_buffers(inner), kernel.masked_by(mask):
            result = body()
        dtype = _dtype(result)
        variable = kernel.cse.newvar(dtype=dtype, shape=result.shape)
        kernel.compute.writeline(f"{c_type(dtype)} {variable} = {_as(other, dtype)};")
        kernel.compute.writeline(f"if ({mask}) {{")
        with kernel.compute.indent():
            kernel.compute.splice(inner)
            kernel.compute.writeline(f"{variable} = {_as(_unwrapped(result), dtype)};")
        kernel.compute.writeline("}")
        return variable

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> str:
        dtype = _joined(x, y)
        V.kernel.chooses = True
        return f"{condition} ? {_as(x, dtype)} : {_as(y, dtype)}"

    # -- arithmetic

    @staticmethod
    def relu(x: Any) -> str:
        return f"mb_relu({x})"

    @staticmethod
    def abs(x: Any) -> str:
        dtype = _dtype(x)
        if dtype.is_floating_point:
            return f"mb_fabs({x})"
        return f"{x}" if dtype in (torch.bool, torch.uint8) else f"{x} < 0 ? -{x} : {x}"

    @staticmethod
    def neg(x: Any) -> str:
        return f"-{x}"

    @staticmethod
    def sign(x: Any) -> str:
        return f"({x} > 0) - ({x} < 0)"

    @staticmethod
    def signbit(x: Any) -> str:
        return f"mb_signbit({x})"

    @staticmethod
    def truediv(x: Any, y: Any) -> str:
        dtype = _joined(x, y)
        dtype = dtype if dtype.is_floating_point else torch.float32
        return f"{_as(x, dtype)} / {_as(y, dtype)}"

    div_rn = truediv

    @staticmethod
    def int_truediv(x: Any, y: Any) -> str:
        return f"float(double({x}) / double({y}))"

    mod = _binary_template("mb_truncmod", floating="mb_fmod")
    fmod = mod
    remainder = _binary_template("mb_remainder", floating="mb_remainder")
    floordiv = _binary_template("mb_floordiv", floating="mb_floordiv")
    truncdiv = _binary_template("mb_truncdiv")
    pow = _binary_template("mb_integer_power", floating="mb_pow")
    maximum = _binary_template("mb_maximum")
    minimum = _binary_template("mb_minimum")
    fmaximum, fminimum = maximum, minimum

    @staticmethod
    def fma(x: Any, y: Any, z: Any) -> str:
        return f"{x} * {y} + {z}"

    @staticmethod
    def mul_rn(x: Any, y: Any) -> str:
        return f"{x} * {y}"

    @staticmethod
    def reciprocal(x: Any) -> str:
        return f"{c_type(_dtype(x))}(1) / {x}"

    @staticmethod
    def ldexp(x: Any, n: Any) -> str:
        return f"mb_ldexp({x}, int({n}))"

    @staticmethod
    def frexp(x: Any) -> Any:
        kernel = V.kernel
        cached = kernel.cse.try_get(f"frexp({x})")
        if cached is not None:
            return cached
        dtype = _dtype(x)
        mantissa, exponent = kernel.cse.newvar(dtype=dtype), kernel.cse.newvar(dtype=torch.int32)
        kernel.compute.writeline(f"int {exponent} = 0;")
        kernel.compute.writeline(f"const {c_type(dtype)} {mantissa} = mb_frexp({x}, &{exponent});")
        kernel.cse.put(f"frexp({x})", (mantissa, exponent))
        return mantissa, exponent

    # -- comparison and logic

    @staticmethod
    def isnan(x: Any) -> str:
        V.kernel.tests_choices |= V.kernel.chooses
        return f"{x} != {x}"

    @staticmethod
    def isinf(x: Any) -> str:
        return f"mb_fabs({x}) == {c_constant(float('inf'), _dtype(x))}"

    @staticmethod
    def logical_not(x: Any) -> str:
        return f"!{x}"

    @staticmethod
    def logical_and(x: Any, y: Any) -> str:
        return f"{_truth(x)} & {_truth(y)}"

    @staticmethod
    def logical_or(x: Any, y: Any) -> str:
        return f"{_truth(x)} | {_truth(y)}"

    @staticmethod
    def logical_xor(x: Any, y: Any) -> str:
        return f"{_truth(x)} ^ {_truth(y)}"

    # Of two bools as logic: g++ does not vectorise the comparison of comparisons.
    eq = _comparison("==", "!({x} ^ {y})")
    ne = _comparison("!=", "{x} ^ {y}")
    gt = _comparison(">", "{x} & !{y}")
    lt = _comparison("<", "!{x} & {y}")
    ge = _comparison(">=", "{x} | !{y}")
    le = _comparison("<=", "!{x} | {y}")

    @staticmethod
    def bitwise_not(x: Any) -> str:
        return f"!{x}" if _dtype(x) == torch.bool else f"~{x}"

    bitwise_left_shift = _binary("mb_shift_left")
    bitwise_right_shift = _binary("mb_shift_right")

    @staticmethod
    def inline_asm_elementwise(*operands: Any, asm: str, dtype: torch.dtype | None = None, **options: Any) -> str:
        """Here the text is a C++ expression: see mybackend.compile.expression."""
        if options:
            raise NotImplementedError("mybackend.compile has no inline assembly")
        return asm.format(*(f"({operand})" for operand in operands))

    # -- random numbers

    @staticmethod
    def load_seed(name: str, offset: Any) -> Any:
        return ops.load(name, sympy.Integer(offset))

    @staticmethod
    def rand(seed: Any, offset: Any) -> str:
        return f"mb_rand({seed}, {offset})"

    @staticmethod
    def randn(seed: Any, offset: Any) -> str:
        return f"mb_randn({seed}, {offset})"

    @staticmethod
    def randint64(seed: Any, offset: Any, low: Any, high: Any) -> str:
        return f"mb_randint64({seed}, {offset}, {low}, {high})"

    # -- functions

    rsqrt = _unary("mb_rsqrt")
    sigmoid = _unary("mb_sigmoid")
    round = _unary("mb_rint")


def _unwrapped(value: Any) -> Any:
    return value.value if isinstance(value, OpsValue) else value


for _name in (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "asin", "acos", "atan", "asinh", "acosh", "atanh", "floor", "ceil", "trunc", "erf", "erfc", "lgamma",
):  # fmt: skip
    setattr(Overrides, _name, _unary(f"mb_{_name}"))
for _name in (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "digamma", "erfcx", "erfinv", "i0", "i0e", "i1",
    "i1e", "log_ndtr", "modified_bessel_k0", "modified_bessel_k1", "ndtr", "ndtri", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "spherical_bessel_j0",
):  # fmt: skip
    setattr(Overrides, _name, _special(f"mb_{_name}", _unary))
for _name, _function in {
    "igamma": "igamma", "igammac": "igammac", "gammainc": "igamma", "gammaincc": "igammac", "zeta": "zeta",
}.items():  # fmt: skip
    setattr(Overrides, _name, _special(f"mb_{_function}", _binary))
for _name in ("atan2", "hypot", "copysign", "nextafter"):
    setattr(Overrides, _name, _binary(f"mb_{_name}"))
