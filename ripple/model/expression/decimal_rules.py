"""The type rule of decimals: they become scaled integers, on which the machine's operations are.

A decimal is ``scaled`` of a tree of an int, with its scale as the value. Sums have the larger of
the scales and products their sum; all of it is exact in 64 bits, or the row fails as integers do.
"""

from __future__ import annotations

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.expression.decimal_type import PRECISION_MAX, Decimal, unscaled
from ripple.model.expression.expr import INT64_MAX, INT64_MIN, Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import (
    arithmetic,
    choice,
    comparison,
    converted,
    whole,
)
from ripple.model.expression.typed import Kind, Typed

_SAME_SCALE = frozenset({"+", "-", "least", "greatest"})
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def decimal_typed(  # noqa: C901  # one case an operation
    expr: Expr, args: tuple[Typed, ...]
) -> Typed:
    """Return an operation of which an operand is a decimal; raises PlanError for others."""
    operation = expr.operation
    if operation in _SAME_SCALE:
        left, right, scale = _aligned(expr, args)
        return _scaled(
            Typed(operation, Kind.INT, left.nullable or right.nullable, (left, right)), scale
        )
    if operation == "*":
        (left, one), (right, other) = (_units(expr, arg) for arg in args)
        if one + other > PRECISION_MAX:
            raise PlanError(
                f"{expr!r} has {one + other} digits behind the point, more than {PRECISION_MAX}:"
                " .round(n) an operand"
            )
        return _scaled(arithmetic("*", left, right), one + other)
    if operation in _COMPARISONS:
        return _compared(expr, operation, args)
    if operation in ("neg", "abs"):
        units, scale = _units(expr, args[0])
        return _scaled(Typed(operation, Kind.INT, units.nullable, (units,)), scale)
    if operation == "is_null":
        units, _ = _units(expr, args[0])
        return Typed("is_null", Kind.BOOL, False, (units,))
    if operation == "fill_null":
        if args[1].kind is Kind.NULL:
            raise PlanError(f"{expr!r} fills nulls with null: give a value")
        value, fallback, scale = _aligned(expr, args)
        nullable = value.nullable and fallback.nullable
        return _scaled(Typed("fill_null", Kind.INT, nullable, (value, fallback)), scale)
    if operation == "when" and args[0].kind is Kind.BOOL:
        chosen, other_one, scale = _aligned(expr, args[1:])
        return _scaled(choice(args[0], chosen, other_one), scale)
    if operation == "is_in":
        return _is_in(expr, args)
    if operation in ("/", "//", "%"):
        raise PlanError(f"{expr!r} divides decimals: write .divide(other, scale=2)")
    raise PlanError(
        f"{expr!r} takes no decimal: .cast(float) or .cast(str) it, or use + - *, comparisons,"
        " .abs(), .round(n), .divide(other, scale=2)"
    )


def divided(expr: Expr, args: tuple[Typed, ...], scale: int, rounding: str) -> Typed:
    """Return a quotient of decimals or integers, rounded once to a scale."""
    (value, of_value), (divisor, of_divisor) = (_units(expr, arg) for arg in args)
    options = (scale + of_divisor - of_value, rounding)
    return _scaled(find("decimal.divide").typed((value, divisor), options), scale)


def rounded(expr: Expr, value: Typed, digits: int) -> Typed:
    """Return a decimal or an integer with at most so many digits behind the point."""
    units, scale = _units(expr, value)
    if digits >= scale:
        return value
    options = (scale - digits, "half_even")
    return _scaled(find("decimal.round").typed((units,), options), digits)


def cast_of(expr: Expr, value: Typed) -> Typed:
    """Return a decimal as a float, an int or a text."""
    units, scale = _units(expr, value)
    if expr.value == "str":
        return find("decimal.to_text").typed((units,), (scale,))
    if expr.value == "float":
        return find("decimal.to_float").typed((units,), (scale,))
    return units if not scale else find("decimal.round").typed((units,), (scale, "down"))


def cast_to(expr: Expr, value: Typed, to: Decimal, strict: bool) -> Typed:
    """Return a text, a float, an integer or another decimal as a decimal."""
    options = (to.precision, to.scale, strict)
    if value.kind is Kind.TEXT:
        return _scaled(find("decimal.of_text").typed((value,), options), to.scale)
    if value.kind is Kind.FLOAT:
        return _scaled(find("decimal.of_float").typed((value,), options), to.scale)
    units, scale = _units(expr, value)
    if scale > to.scale:
        raise PlanError(
            f"{expr!r} would lose digits of a decimal with {scale} behind the point:"
            f" .round({to.scale}) it first"
        )
    most = 10 ** (to.precision - (to.scale - scale)) - 1
    if strict:
        held = _within(units, most)
    else:
        tests = comparison("<=", units, whole(most)), comparison(">=", units, whole(-most))
        fits = Typed("&", Kind.BOOL, units.nullable, tests)
        held = choice(fits, units, Typed("null", Kind.INT, nullable=True))
    return _scaled(_finer(expr, held, to.scale - scale), to.scale)


def literal(text: str) -> Typed:
    """Return a constant decimal of plain digits."""
    units, scale = unscaled(text)
    return _scaled(whole(units), scale)


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
    hint = ""
    if arg.kind is Kind.FLOAT:
        hint = ": .cast(float) the decimal, or .cast(rp.Decimal(18, 4)) the float"
    elif arg.kind is Kind.TEXT:
        hint = ": .cast(rp.Decimal(18, 4)) the text, or .cast(str) the decimal"
    raise PlanError(f"{expr!r} mixes a decimal and {arg.kind.value}{hint}")


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


def _compared(expr: Expr, operation: str, args: tuple[Typed, ...]) -> Typed:
    """Compare by value: no operand is made finer, so that none is too large for that."""
    if any(arg.kind is Kind.NULL for arg in args):
        raise PlanError(f"{expr!r} compares a decimal with null; use .is_null()")
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
    found = None
    for choice_ in args[1:]:
        test = _compared(expr, "==", (args[0], choice_))
        found = test if found is None else Typed("|", Kind.BOOL, found.nullable, (found, test))
    assert found is not None, "is_in has a value at least"
    return found


def _within(units: Typed, most: int) -> Typed:
    """Return units, of which those beyond ``most`` fail: a sum with a constant overflows there."""
    for beyond in (INT64_MAX - most, INT64_MIN + most):
        units = arithmetic("-", arithmetic("+", units, beyond), beyond)
    return units
