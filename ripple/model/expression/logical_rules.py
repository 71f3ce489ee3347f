"""The type rules of dates and times: they become whole numbers, for the machine's own operations.

A date is ``logical`` of a tree of an int, its days since 1970, and a time of its nanoseconds; the
kind has the type. A date beyond the years 1 to 9999 fails its row, like an integer beyond 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ripple.core.errors import PlanError
from ripple.model.expression.expr import INT64_MAX, INT64_MIN, Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import arithmetic, choice, comparison, whole
from ripple.model.expression.functions.time import DAY, DAY_PARTS, UNITS, day_of, truncated_days
from ripple.model.expression.logical_constants import PlainDate
from ripple.model.expression.typed import (
    LOGICAL_CASTS,
    Kind,
    Typed,
    equal_to_any,
    filled,
    need_no_null,
    plain_value,
)
from ripple.model.schema.logical.dates import DATE_LEAST, DATE_MOST

_HINTS = {
    (Kind.DATE, Kind.TEXT): ": write a constant as datetime.date(2026, 1, 31)",
    (Kind.DATE, Kind.INT): ": the date of a time is its .dt.date()",
    (Kind.DATE, Kind.TIME): ": the date of a time is its .dt.date()",
    (
        Kind.TIME,
        Kind.TEXT,
    ): ": write a constant as a datetime.datetime with tzinfo=",
    (Kind.TIME, Kind.INT): ": .cast(int) gives a time's nanoseconds since 1970",
    (Kind.TIME, Kind.DATE): ": the date of a time is its .dt.date()",
}
_CAST_HINTS = {
    Kind.TIME: ": the date of a time is its .dt.date()",
    Kind.DATE: ": the midnight of a date in UTC is .dt.epoch('ns') with this cast",
}
_OF_TEXT = {Kind.DATE: "logical.date_of", Kind.TIME: "logical.time_of"}
_UNITS = {Kind.DATE: "days", Kind.TIME: "nanoseconds"}


def logical_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation that has to do with these; raises PlanError where there is none."""
    found = [arg.kind for arg in args if arg.kind in _UNITS]
    kind = found[0] if found else Kind.INT
    rule = _RULES.get(expr.operation)
    if rule is None and kind is Kind.TIME and expr.operation.startswith("dt."):
        return _function(expr, args)
    if rule is None:
        raise _no_operand(expr, kind)
    return rule(expr, args, kind)


def logical(number: Typed, kind: Kind) -> Typed:
    """Return the date or the time of a tree of its number."""
    return Typed("logical", kind, number.nullable, (number,))


def _no_operand(expr: Expr, kind: Kind) -> PlanError:
    word, units = kind.value.removeprefix("a "), _UNITS[kind]
    return PlanError(
        f"{expr!r} takes no {word}: use comparisons, a difference of {word}s, + and - whole"
        f" {units}, or the methods of .dt; .cast(str) gives its text and .cast(int) the {units}"
        " since 1970"
    )


def _literal(expr: Expr, _args: tuple[Typed, ...], _kind: Kind) -> Typed:
    kind = Kind.DATE if isinstance(expr.value, PlainDate) else Kind.TIME
    return logical(whole(expr.value.number), kind)


def _number(expr: Expr, arg: Typed, kind: Kind) -> Typed:
    """Return the number of an operand that has to be of a kind."""
    if arg.kind is kind:
        return arg.args[0]
    if arg.kind is Kind.NULL:
        return Typed("null", Kind.INT, nullable=True)
    hint = _HINTS.get((kind, arg.kind), "")
    raise PlanError(f"{expr!r} mixes {kind.value} and {arg.kind.value}{hint}")


def _compare(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    need_no_null(expr, args, kind.value)
    left, right = (_number(expr, arg, kind) for arg in args)
    return comparison(expr.operation, left, right)


def _is_in(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    for one in args[1:]:
        if one.kind is Kind.NULL:
            raise PlanError(f"{expr!r} looks for null: use .is_null()")
    numbers = tuple(_number(expr, arg, kind) for arg in args)
    return equal_to_any(numbers, partial(comparison, "=="))


def _sum(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    left, right = args
    if right.kind is kind and left.kind is Kind.INT:
        left, right = right, left
    if left.kind is not kind or right.kind is not Kind.INT:
        raise _no_operand(expr, kind)
    return _within(arithmetic("+", left.args[0], right), kind)


def _difference(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    left, right = args
    if left.kind is kind and right.kind is Kind.INT:
        return _within(arithmetic("-", left.args[0], right), kind)
    return arithmetic("-", _number(expr, left, kind), _number(expr, right, kind))


def _extreme(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    left, right = (_number(expr, arg, kind) for arg in args)
    nullable = left.nullable or right.nullable
    return logical(Typed(expr.operation, Kind.INT, nullable, (left, right)), kind)


def _is_null(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    return Typed("is_null", Kind.BOOL, False, (_number(expr, args[0], kind),))


def _fill_null(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    value, other = (_number(expr, arg, kind) for arg in args)
    return logical(filled(expr, value, other), kind)


def _when(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if args[0].kind is not Kind.BOOL:
        raise _no_operand(expr, kind)
    chosen, other = (_number(expr, arg, kind) for arg in args[1:])
    return logical(choice(args[0], chosen, other), kind)


def _cast(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if expr.value in LOGICAL_CASTS:
        return _cast_to(expr, args, LOGICAL_CASTS[expr.value])
    number = _number(expr, args[0], kind)
    if expr.value == "str":
        return find("logical.date" if kind is Kind.DATE else "logical.time").typed((number,), ())
    if expr.value == "int":
        return number
    raise _no_operand(expr, kind)


def _cast_to(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    """Return the date or the time of an integer, of a text, or of itself."""
    arg, strict = args[0], len(args) == 1
    if arg.kind is Kind.TEXT:
        return logical(find(_OF_TEXT[kind]).typed((arg,), (strict,)), kind)
    if arg.kind is kind:
        return arg
    if arg.kind is Kind.INT:
        return _within(arg, kind)
    raise PlanError(
        f"{expr!r} takes a text, or an integer, the {_UNITS[kind]} since 1970, not {arg.kind.value}"
        f"{_CAST_HINTS.get(arg.kind, '')}"
    )


def _part(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    number = _number(expr, args[0], kind)
    return DAY_PARTS[expr.operation](number if kind is Kind.DATE else day_of(number))


def _epoch(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if kind is Kind.TIME:
        return _function(expr, args)
    days, unit = _number(expr, args[0], kind), plain_value(args[1])
    return days if unit == "d" else arithmetic("*", days, DAY // UNITS[unit])


def _date(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if args[0].kind not in (Kind.INT, Kind.TIME):
        raise PlanError(f"{expr!r} takes a time, not {args[0].kind.value}")
    time = args[0] if kind is Kind.INT else _number(expr, args[0], kind)
    return logical(day_of(time), Kind.DATE)


def _truncate(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if kind is Kind.TIME:
        return logical(_function(expr, args), kind)
    count, unit = map(plain_value, args[1:])
    if unit not in ("d", "w", "mo"):
        raise PlanError(f"{expr!r} is of a date, which has days: use d, w, mo, q or y")
    return _within(truncated_days(_number(expr, args[0], kind), count, unit), kind)


def _begin(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if kind is not Kind.TIME:
        raise _no_operand(expr, kind)
    return logical(_function(expr, args), kind)


def _function(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return a function of times as a function of nanoseconds; local times are integers."""
    number = _number(expr, args[0], Kind.TIME)
    return find(expr.operation).typed((number,), tuple(map(plain_value, args[1:])))


def _within(number: Typed, kind: Kind) -> Typed:
    """Return a date that fails beyond the calendar: a sum overflows there."""
    if kind is Kind.DATE:
        for beyond in (INT64_MAX - DATE_MOST, INT64_MIN - DATE_LEAST):
            number = arithmetic("-", arithmetic("+", number, beyond), beyond)
    return logical(number, kind)


_RULES: dict[str, Callable[[Expr, tuple[Typed, ...], Kind], Typed]] = {
    "lit": _literal,
    "+": _sum,
    "-": _difference,
    **dict.fromkeys(("least", "greatest"), _extreme),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _compare),
    "is_in": _is_in,
    "is_null": _is_null,
    "fill_null": _fill_null,
    "when": _when,
    "cast": _cast,
    **dict.fromkeys(DAY_PARTS, _part),
    "dt.epoch": _epoch,
    "dt.date": _date,
    "dt.truncate": _truncate,
    **dict.fromkeys(("dt.span_begin", "dt.session_start"), _begin),
}
