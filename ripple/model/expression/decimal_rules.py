"""The type rules of decimals: they become scaled integers, for the machine's own operations.

A decimal is ``scaled`` of a tree of an int, with its scale as the value. Sums have the larger of
the scales and products their sum; all of it is exact in 64 bits, or the row fails as integers do.
"""

from __future__ import annotations

from collections.abc import Callable

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import INT64_MAX, INT64_MIN, Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import (
    arithmetic,
    choice,
    comparison,
    converted,
    whole,
)
from ripple.model.expression.logical_constants import unscaled
from ripple.model.expression.typed import (
    LOGICAL_CASTS,
    UUID_CAST,
    Kind,
    Typed,
    equal_to_any,
    filled,
    need_no_null,
    plain_value,
)
from ripple.model.schema.types import PRECISION_MAX, Decimal, WideDecimal

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def decimal_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation that has to do with decimals; raises PlanError where there is none."""
    rule = _RULES.get(expr.operation)
    if rule is None:
        raise no_decimal(expr)
    return rule(expr, args)


def no_decimal(expr: Expr) -> PlanError:
    """Return the error for an operation that takes none."""
    return PlanError(
        f"{expr!r} takes no decimal: .cast(float) or .cast(str) it, or use + - *, comparisons,"
        " .abs(), .round(n), .divide(other, scale=2)"
    )


def no_division(expr: Expr, _args: tuple[Typed, ...]) -> Typed:
    """Raise the PlanError for operators that would have to choose a scale."""
    raise PlanError(f"{expr!r} divides decimals: write .divide(other, scale=2)")


def _literal(expr: Expr, _args: tuple[Typed, ...]) -> Typed:
    units, scale = unscaled(expr.value.digits)
    if abs(units) >= 10**PRECISION_MAX or scale > PRECISION_MAX:
        from ripple.model.expression.wide_rules import wide_constant  # noqa: PLC0415 - most have none

        return wide_constant(units, scale)
    return _scaled(whole(units), scale)


def _of_larger_scale(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right, scale = _aligned(expr, args)
    nullable = left.nullable or right.nullable
    return _scaled(Typed(expr.operation, Kind.INT, nullable, (left, right)), scale)


def _product(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    (left, one), (right, other) = (_units(expr, arg) for arg in args)
    need_scale(expr, one + other, PRECISION_MAX)
    return _scaled(arithmetic("*", left, right), one + other)


def _quotient(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if any(arg.kind is Kind.FLOAT for arg in args[:2]):
        raise PlanError(
            f"{expr!r} divides a float, and .divide is of decimals and integers: write / for"
            " floats, or .cast(rp.Decimal(18, 4)) the float"
        )
    (value, of_value), (divisor, of_divisor) = (_units(expr, arg) for arg in args[:2])
    scale, rounding = map(plain_value, args[2:])
    options = (scale + of_divisor - of_value, rounding)
    return _scaled(find("decimal.divide").typed((value, divisor), options), scale)


def _sign(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    units, scale = _units(expr, args[0])
    return _scaled(Typed(expr.operation, Kind.INT, units.nullable, (units,)), scale)


def _round(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    units, scale = _units(expr, args[0])
    digits = plain_value(args[1]) if args[1:] else 0
    if digits >= scale:
        return args[0]
    options = (scale - digits, "half_even")
    return _scaled(find("decimal.round").typed((units,), options), digits)


def _is_null(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    units, _ = _units(expr, args[0])
    return Typed("is_null", Kind.BOOL, False, (units,))


def _fill_null(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    value, fallback, scale = _aligned(expr, args)
    return _scaled(filled(expr, value, fallback), scale)


def _when(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if args[0].kind is not Kind.BOOL:
        raise no_decimal(expr)
    chosen, other, scale = _aligned(expr, args[1:])
    return _scaled(choice(args[0], chosen, other), scale)


def _cast(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if isinstance(expr.value, Decimal):
        return _cast_to(expr, args[0], expr.value, strict=len(args) == 1)
    if expr.value == UUID_CAST:
        raise no_decimal(expr)
    if expr.value in LOGICAL_CASTS:
        raise PlanError(f"{expr!r} takes no decimal: .cast(int) it first")
    units, scale = _units(expr, args[0])
    if expr.value == "str":
        return find("decimal.to_text").typed((units,), (scale,))
    if expr.value == "float":
        return find("decimal.to_float").typed((units,), (scale,))
    return units if not scale else find("decimal.round").typed((units,), (scale, "down"))


def _cast_to(expr: Expr, value: Typed, to: Decimal, *, strict: bool) -> Typed:
    options = (to.precision, to.scale, strict)
    if value.kind is Kind.TEXT:
        return _scaled(find("decimal.of_text").typed((value,), options), to.scale)
    if value.kind is Kind.FLOAT:
        return _scaled(find("decimal.of_float").typed((value,), options), to.scale)
    units, scale = _units(expr, value)
    if scale > to.scale:
        raise finer_than(expr, scale, to)
    most = 10 ** (to.precision - (to.scale - scale)) - 1
    if strict:
        number = find("decimal.of_units").typed((units,), (most,))
    else:
        tests = comparison("<=", units, whole(most)), comparison(">=", units, whole(-most))
        fits = Typed("&", Kind.BOOL, units.nullable, tests)
        number = choice(fits, units, Typed("null", Kind.INT, nullable=True))
    return _scaled(_finer(expr, number, to.scale - scale), to.scale)


def decimal_item(expr: Expr, arg: Typed, of: Decimal) -> Typed:
    """Return the units of an operand, as a list of decimals stores its items."""
    units, scale = _units(expr, arg)
    if scale > of.scale:
        raise finer_than(expr, scale, of)
    return _finer(expr, units, of.scale - scale)


def need_scale(expr: Expr, scale: int, most: int) -> None:
    """Raise PlanError for a product of more than ``most`` digits behind the point."""
    if scale > most:
        raise PlanError(
            f"{expr!r} has {scale} digits behind the point, more than {most}: .round(n) an operand"
        )


def no_operand(expr: Expr, arg: Typed, way_out: Decimal | WideDecimal) -> PlanError:
    """Return the error for an operand that is no decimal. way_out: a type to cast it to."""
    hint = ""
    if arg.kind is Kind.FLOAT:
        hint = f": .cast(float) the decimal, or .cast({way_out}) the float"
    elif arg.kind is Kind.TEXT:
        hint = f": .cast({way_out}) the text, or .cast(str) the decimal"
    return PlanError(f"{expr!r} mixes a decimal and {arg.kind.value}{hint}")


def finer_than(expr: Expr, scale: int, to: Decimal | WideDecimal) -> PlanError:
    """Return the error for a cast of a decimal to a type with fewer digits behind the point."""
    return PlanError(
        f"{expr!r} would lose digits of a decimal with {scale} behind the point:"
        f" .round({to.scale}) it first"
    )


def _scaled(units: Typed, scale: int) -> Typed:
    return Typed("scaled", Kind.DECIMAL, units.nullable, (units,), scale)


def _units(expr: Expr, arg: Typed) -> tuple[Typed, int]:
    """Return an operand's units and scale: an integer has no digits behind the point."""
    if arg.kind is Kind.DECIMAL:
        return arg.args[0], arg.value
    if arg.kind is Kind.INT:
        return arg, 0
    if arg.kind is Kind.NULL:
        return Typed("null", Kind.INT, nullable=True), 0
    raise no_operand(expr, arg, Decimal(PRECISION_MAX, 4))


def _finer(expr: Expr, units: Typed, digits: int) -> Typed:
    """Return units of which there are 10 ** digits in one of these."""
    if not digits or units.operation == "null":
        return units
    if units.operation != "lit":
        return arithmetic("*", units, 10**digits)
    product = units.value.value * 10**digits
    if not INT64_MIN <= product <= INT64_MAX:
        raise PlanError(
            f"{expr!r}: {shown(units.value.value)} with {digits} more digits does not fit into"
            " 64 bits"
        )
    return whole(product)


def _aligned(expr: Expr, args: tuple[Typed, ...]) -> tuple[Typed, Typed, int]:
    (left, one), (right, other) = (_units(expr, arg) for arg in args)
    scale = max(one, other)
    return _finer(expr, left, scale - one), _finer(expr, right, scale - other), scale


def _compare(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return _compared(expr, expr.operation, args)


def _compared(expr: Expr, operation: str, args: tuple[Typed, ...]) -> Typed:
    """Compare by value: no operand is made finer, so that none is too large for that."""
    need_no_null(expr, args, Kind.DECIMAL.value)
    (coarse, one), (fine, other) = (_units(expr, arg) for arg in args)
    if one > other:
        coarse, fine, operation = fine, coarse, _MIRRORED[operation]
    if one == other:
        return comparison(operation, coarse, fine)
    digits = 10 ** abs(one - other)
    below = arithmetic("//", fine, digits)
    rest = arithmetic("%", fine, digits)
    if operation in ("==", "!="):
        tests = comparison("==", coarse, below), comparison("==", rest, whole(0))
        # A product, since "&" is not null where one side is false.
        both = arithmetic("*", *(converted(test, Kind.INT) for test in tests))
        return comparison(operation, both, whole(1))
    if operation in ("<", ">="):  # the fine one rounded up
        below = arithmetic("+", below, converted(comparison(">", rest, whole(0)), Kind.INT))
    return comparison(operation, coarse, below)


def _is_in(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return equal_to_any(args, lambda *pair: _compared(expr, "==", pair))


_RULES: dict[str, Callable[[Expr, tuple[Typed, ...]], Typed]] = {
    "lit": _literal,
    **dict.fromkeys(("+", "-", "least", "greatest"), _of_larger_scale),
    "*": _product,
    "divide": _quotient,
    **dict.fromkeys(("/", "//", "%"), no_division),
    **dict.fromkeys(_MIRRORED, _compare),
    "is_in": _is_in,
    **dict.fromkeys(("neg", "abs"), _sign),
    "round": _round,
    "is_null": _is_null,
    "fill_null": _fill_null,
    "when": _when,
    "cast": _cast,
}
