"""Sympy expressions of sizes and indices as C++.

Index variables are `mb_index`, which is int where every index of the kernel fits; literals carry no suffix, so that
such arithmetic stays in 32 bits and vectorises. A value that is wanted as a number and not as an index is printed by
`wide_text`.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.precedence import PRECEDENCE, precedence
from torch.utils._sympy.printers import ExprPrinter

__all__ = ["index_text", "wide_text"]


class IndexPrinter(ExprPrinter):
    def _print_Integer(self, e: sympy.Expr) -> str:
        value = int(e)
        if value == -(2**63):
            return "mb_i64(0x8000000000000000ull)"
        return str(value) if abs(value) < 2**31 else f"{value}ll"

    def _print_Symbol(self, e: sympy.Expr) -> str:
        return str(e.name)

    def _print_Rational(self, e: sympy.Expr) -> str:
        return f"({e.p}.0 / {e.q}.0)"

    def _integer(self, e: sympy.Expr) -> str:
        return f"({self._print(e)})"

    def _floor_divide(self, x: sympy.Expr, divisor: sympy.Expr) -> str:
        if x.is_nonnegative and divisor.is_positive:
            return f"({self._integer(x)} / {self._integer(divisor)})"
        return f"mb_floordiv<mb_i64>({self._print(x)}, {self._print(divisor)})"

    def _print_FloorDiv(self, e: sympy.Expr) -> str:
        x, divisor = e.args
        if e.is_integer:
            return self._floor_divide(x, divisor)
        return f"mb_floor(double({self._print(x)}) / double({self._print(divisor)}))"

    def _print_ModularIndexing(self, e: sympy.Expr) -> str:
        x, divisor, modulus = e.args
        quotient = self._integer(x) if divisor == 1 else self._floor_divide(x, divisor)
        return f"({quotient} % {self._integer(modulus)})"

    def _print_PythonMod(self, e: sympy.Expr) -> str:
        x, modulus = e.args
        if x.is_nonnegative and modulus.is_positive:
            return f"({self._integer(x)} % {self._integer(modulus)})"
        return f"mb_modulo<mb_i64>({self._print(x)}, {self._print(modulus)})"

    def _print_Where(self, e: sympy.Expr) -> str:
        condition, x, y = (self._print(arg) for arg in e.args)
        return f"(({condition}) ? ({x}) : ({y}))"

    def _print_Piecewise(self, e: sympy.Expr) -> str:
        text = "0"
        for value, condition in reversed(e.args):
            value_text = self._print(value)
            text = value_text if condition == True else f"(({self._print(condition)}) ? ({value_text}) : ({text}))"  # noqa: E712
        return f"({text})"

    def _print_And(self, e: sympy.Expr) -> str:
        return str(self.stringify(e.args, " && ", precedence(e)))

    def _print_Or(self, e: sympy.Expr) -> str:
        return str(self.stringify(e.args, " || ", precedence(e)))

    def _print_Not(self, e: sympy.Expr) -> str:
        return f"!({self._print(e.args[0])})"

    def _print_Min(self, e: sympy.Expr) -> str:
        return self._nested(e, "mb_minimum")

    def _print_Max(self, e: sympy.Expr) -> str:
        return self._nested(e, "mb_maximum")

    def _nested(self, e: sympy.Expr, function: str) -> str:
        type_name = "mb_i64" if e.is_integer else "double"
        text = self._print(e.args[0])
        for arg in e.args[1:]:
            text = f"{function}<{type_name}>({text}, {self._print(arg)})"
        return str(text)

    def _print_Abs(self, e: sympy.Expr) -> str:
        x = self._print(e.args[0])
        return f"(({x}) < 0 ? -({x}) : ({x}))"

    def _print_Pow(self, e: sympy.Expr) -> str:
        base, exponent = e.args
        if exponent == sympy.Rational(1, 2):
            return f"mb_sqrt(double({self._print(base)}))"
        if exponent.is_integer and int(exponent) >= 0:
            return str(self.stringify([base] * int(exponent), "*", PRECEDENCE["Mul"])) if exponent != 0 else "1"
        if exponent == -1:
            return f"(1.0 / double({self._print(base)}))"
        return f"mb_pow(double({self._print(base)}), double({self._print(exponent)}))"

    def _print_PowByNatural(self, e: sympy.Expr) -> str:
        base, exponent = e.args
        return f"mb_integer_power<mb_i64>({self._print(base)}, {self._print(exponent)})"

    def _print_FloatPow(self, e: sympy.Expr) -> str:
        base, exponent = e.args
        return f"mb_pow(double({self._print(base)}), double({self._print(exponent)}))"

    def _print_FloatTrueDiv(self, e: sympy.Expr) -> str:
        x, y = e.args
        return f"(double({self._print(x)}) / double({self._print(y)}))"

    _print_IntTrueDiv = _print_FloatTrueDiv

    def _print_ToFloat(self, e: sympy.Expr) -> str:
        return f"double({self._print(e.args[0])})"

    def _rounded(self, e: sympy.Expr, function: str) -> str:
        text = f"{function}(double({self._print(e.args[0])}))"
        return f"mb_i64({text})" if e.is_integer else text

    def _print_floor(self, e: sympy.Expr) -> str:
        return self._rounded(e, "mb_floor")

    def _print_ceiling(self, e: sympy.Expr) -> str:
        return self._rounded(e, "mb_ceil")

    def _print_TruncToFloat(self, e: sympy.Expr) -> str:
        return self._rounded(e, "mb_trunc")

    _print_FloorToInt = _print_floor
    _print_CeilToInt = _print_ceiling
    _print_TruncToInt = _print_TruncToFloat

    def _print_RoundToInt(self, e: sympy.Expr) -> str:
        return f"mb_i64(mb_rint(double({self._print(e.args[0])})))"

    def _print_RoundDecimal(self, e: sympy.Expr) -> str:
        number, digits = e.args
        return f"(mb_rint(1e{digits} * double({self._print(number)})) * 1e{-digits})"

    def _print_BooleanTrue(self, e: sympy.Expr) -> str:
        return "true"

    def _print_BooleanFalse(self, e: sympy.Expr) -> str:
        return "false"

    def _print_Infinity(self, e: sympy.Expr) -> str:
        return "double(MB_INF)"

    def _print_NegativeInfinity(self, e: sympy.Expr) -> str:
        return "double(-MB_INF)"

    _print_IntInfinity = _print_Infinity
    _print_NegativeIntInfinity = _print_NegativeInfinity

    def _print_NaN(self, e: sympy.Expr) -> str:
        return "double(MB_NAN)"


def _opaque(function: str) -> Any:
    def _print(self: IndexPrinter, e: sympy.Expr) -> str:
        return f"{function}(double({self._print(e.args[0])}))"

    return _print


for _name in (
    "cos", "cosh", "acos", "sin", "sinh", "asin", "tan", "tanh", "atan", "sqrt", "log2", "exp", "log", "asinh",
    "acosh", "atanh",
):  # fmt: skip
    setattr(IndexPrinter, f"_print_OpaqueUnaryFn_{_name}", _opaque(f"mb_{_name}"))


class WidePrinter(IndexPrinter):
    """The same with every integer variable taken to 64 bits first."""

    def _print_Symbol(self, e: sympy.Expr) -> str:
        return f"mb_i64({e.name})" if e.is_integer else str(e.name)


_index_printer, _wide_printer = IndexPrinter(), WidePrinter()


def index_text(e: sympy.Expr) -> str:
    return str(_index_printer.doprint(e))


def wide_text(e: sympy.Expr) -> str:
    return str(_wide_printer.doprint(e))
