"""Decimals in expressions, one value at a time in fractions: nothing here is a scaled integer.

A decimal is a ``Fraction``; its kind is a ``Scale``, with the limit of its units of
10 ** -scale: 64 bits, or for a wide one 38 digits.
"""

from __future__ import annotations

import decimal
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ripple.model.expression.expr import Expr
from ripple.model.expression.program import FAILURES, NO_NUMBER, NO_ROOM
from ripple.model.schema.types import DECIMALS, WideDecimal
from ripple.testing.reference.failures import DIVISION, OVERFLOW, WORST, Failed

_NO_NUMBER, _NO_ROOM = Failed(FAILURES[NO_NUMBER]), Failed(FAILURES[NO_ROOM])
_WIDE = decimal.Context(prec=400)


@dataclass(frozen=True)
class Scale:
    """The kind of decimals with so many digits behind the point."""

    digits: int
    is_wide: bool = False

    def fits(self, value: Any) -> Any:
        """Return a value, or the failure of one that has too many digits."""
        if value is None or isinstance(value, Failed):
            return value
        exact = Fraction(value)
        units = exact * 10**self.digits
        is_one = abs(units) < 10**38 if self.is_wide else -(2**63) <= units < 2**63
        return exact if is_one else OVERFLOW


def constant(digits: str) -> tuple[Any, Any]:
    """Return kind and value of a constant."""
    scale = len(digits.partition(".")[2])
    is_wide = scale > 18 or abs(Fraction(digits)) * 10**scale >= 10**18
    return Scale(scale, is_wide), Fraction(digits)


def concerned(expr: Expr, kinds: list[Any]) -> bool:
    """Tell whether decimals are computed: fractions compare as all numbers do."""
    if expr.operation in _AS_NUMBERS:
        return False
    if expr.operation == "divide" or isinstance(expr.value, DECIMALS):
        return True
    return any(isinstance(kind, Scale) for kind in kinds)


def evaluate(expr: Expr, kinds: list[Any], args: list[Any]) -> tuple[Any, Any]:
    """Return kind and value of an operation with decimals."""
    operation = expr.operation
    scales = [kind.digits if isinstance(kind, Scale) else 0 for kind in kinds]
    is_wide = any(isinstance(kind, Scale) and kind.is_wide for kind in kinds)
    if operation == "fill_null":
        of = Scale(max(scales), is_wide)
        return of, of.fits(args[1] if args[0] is None else args[0])
    if operation == "when":
        of = Scale(max(scales[1:]), is_wide)
        if isinstance(args[0], Failed):
            return of, args[0]
        return of, of.fits(args[1] if args[0] else args[2])
    kind, compute = _strict(expr, kinds, scales, is_wide)
    operands = {"cast": 1, "round": 1, "divide": 2}.get(operation, len(args))
    if operation in _ALIGNED:  # which fails an operand before another is looked at
        args = [Scale(max(scales), is_wide).fits(arg) for arg in args]
    failures = [arg for arg in args[:operands] if isinstance(arg, Failed)]
    if failures:
        return kind, max(failures, key=WORST.index)
    if None in args[:operands]:
        return kind, None
    return kind, compute(*args)


def _strict(
    expr: Expr, kinds: list[Any], scales: list[int], is_wide: bool
) -> tuple[Any, Callable[..., Any]]:
    operation = expr.operation
    if operation in _ALIGNED:
        of = Scale(max(scales), is_wide)
        return of, lambda a, b: of.fits(_ALIGNED[operation](Fraction(a), Fraction(b)))
    if operation == "*":
        of = Scale(sum(scales), is_wide)
        return of, lambda a, b: of.fits(Fraction(a) * b)
    if operation in ("neg", "abs"):
        of = kinds[0]
        return of, lambda a: of.fits(-a if operation == "neg" else abs(a))
    if operation == "round":
        digits = min(expr.args[1].value if expr.args[1:] else 0, scales[0])
        # Python's rounding of fractions takes ties to the even one.
        of = Scale(digits, is_wide)
        return of, lambda a, *_: Fraction(round(a * 10**digits), 10**digits)
    if operation == "divide":
        return _quotient(expr, is_wide)
    return _cast(expr, kinds[0], scales[0])


def _quotient(expr: Expr, is_wide: bool) -> tuple[Any, Callable[..., Any]]:
    scale, rounding = expr.args[2].value, f"ROUND_{expr.args[3].value.upper()}"

    def quotient(a: Any, b: Any, *_: Any) -> Any:
        if not b:
            return DIVISION
        units = _rounded(Fraction(a) / b * 10**scale, rounding)
        most = 10**38 if is_wide else 10**18
        return OVERFLOW if abs(units) >= most else Fraction(units, 10**scale)

    return Scale(scale, is_wide), quotient


def _cast(expr: Expr, kind: Any, scale: int) -> tuple[Any, Callable[..., Any]]:
    to, strict = expr.value, len(expr.args) == 1
    if not isinstance(to, DECIMALS):
        if to == "str":
            return (
                str,
                lambda a, *_: f"{decimal.Decimal(int(a * 10**scale)).scaleb(-scale, _WIDE):f}",
            )
        if to == "float":
            return float, lambda a, *_: float(a)
        return int, lambda a, *_: _whole(int(a), strict)

    def cast(a: Any, *_: Any) -> Any:
        try:
            exact = _text(a) if kind is str else Fraction(a)
        except (ValueError, OverflowError) as error:
            failed = _NO_NUMBER if kind is str and type(error) is ValueError else _NO_ROOM
            return failed if strict else None
        units = exact * 10**to.scale
        if kind is float:
            units = Fraction(round(units))
        if units.denominator != 1 or abs(units) >= 10**to.precision:
            return _NO_ROOM if strict else None
        return units / 10**to.scale

    return Scale(to.scale, isinstance(to, WideDecimal)), cast


def _whole(value: int, strict: bool) -> Any:
    return value if -(2**63) <= value < 2**63 else OVERFLOW if strict else None


def _text(text: str) -> Fraction:
    if not text or set(text) - set("0123456789+-.eE"):
        raise ValueError(text)
    try:
        value = decimal.Decimal(text)
        if not value:
            return Fraction(0)
        if abs(value.adjusted()) > 1_000:  # no fraction is made of that
            raise OverflowError(text)
        return Fraction(value)
    except decimal.InvalidOperation as error:
        raise ValueError(text) from error


def _rounded(value: Fraction, rounding: str) -> int:
    # One digit more than is asked for, and another if anything is behind it, decide all roundings.
    tenths, rest = divmod(abs(value) * 10, 1)
    digits = decimal.Decimal(int(tenths) * 10 + (rest > 0)).scaleb(-2, _WIDE)
    signed = -digits if value < 0 else digits
    return int(signed.quantize(decimal.Decimal(1), rounding, _WIDE))


_ALIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "least": min,
    "greatest": max,
}
_AS_NUMBERS = frozenset({"is_null", "is_in", "==", "!=", "<", "<=", ">", ">="})
