"""The type rules of dates: they become days since 1970, for the machine's own operations.

A date is ``dated`` of a tree of an int. A result beyond the years 1 to 9999 fails its row, as an
integer beyond 64 bits does.
"""

from __future__ import annotations

from collections.abc import Callable

from ripple.core.errors import PlanError
from ripple.model.expression.date_type import PlainDate
from ripple.model.expression.expr import INT64_MAX, INT64_MIN, Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import arithmetic, choice, comparison, whole
from ripple.model.expression.functions.time import DAY, DAY_PARTS, UNITS, day_of, truncated_days
from ripple.model.expression.typed import Kind, Typed, any_of, plain_value
from ripple.model.schema.held import DATE_LEAST, DATE_MOST


def date_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation that has to do with dates; raises PlanError where there is none."""
    rule = _RULES.get(expr.operation)
    if rule is None:
        raise _no_date(expr)
    return rule(expr, args)


def dated(days: Typed) -> Typed:
    """Return the date of a tree of days since 1970."""
    return Typed("dated", Kind.DATE, days.nullable, (days,))


def _no_date(expr: Expr) -> PlanError:
    return PlanError(
        f"{expr!r} takes no date: use comparisons, a difference of dates, + and - whole days, or"
        " the methods of .dt; .cast(str) gives its text and .cast(int) the days since 1970"
    )


def _literal(expr: Expr, _args: tuple[Typed, ...]) -> Typed:
    assert isinstance(expr.value, PlainDate)
    return dated(whole(expr.value.days))


def _days(expr: Expr, arg: Typed) -> Typed:
    """Return the days of an operand that has to be a date."""
    if arg.kind is Kind.DATE:
        return arg.args[0]
    if arg.kind is Kind.NULL:
        return Typed("null", Kind.INT, nullable=True)
    hint = ""
    if arg.kind is Kind.TEXT:
        hint = ": write a constant as datetime.date(2026, 1, 31)"
    elif arg.kind is Kind.INT:
        hint = ": the date of a time is its .dt.date()"
    raise PlanError(f"{expr!r} mixes a date and {arg.kind.value}{hint}")


def _compare(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if any(arg.kind is Kind.NULL for arg in args):
        raise PlanError(f"{expr!r} compares a date with null; use .is_null()")
    left, right = (_days(expr, arg) for arg in args)
    return comparison(expr.operation, left, right)


def _is_in(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    value, *choices = args
    for one in choices:
        if one.kind is Kind.NULL:
            raise PlanError(f"{expr!r} looks for null: use .is_null()")
    days = _days(expr, value)
    return any_of([comparison("==", days, _days(expr, one)) for one in dict.fromkeys(choices)])


def _sum(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right = args
    if right.kind is Kind.DATE and left.kind is Kind.INT:
        left, right = right, left
    if left.kind is not Kind.DATE or right.kind is not Kind.INT:
        raise _no_date(expr)
    return dated(_within(arithmetic("+", left.args[0], right)))


def _difference(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right = args
    if left.kind is Kind.DATE and right.kind is Kind.INT:
        return dated(_within(arithmetic("-", left.args[0], right)))
    return arithmetic("-", _days(expr, left), _days(expr, right))


def _extreme(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right = (_days(expr, arg) for arg in args)
    nullable = left.nullable or right.nullable
    return dated(Typed(expr.operation, Kind.INT, nullable, (left, right)))


def _is_null(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return Typed("is_null", Kind.BOOL, False, (_days(expr, args[0]),))


def _fill_null(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if args[1].kind is Kind.NULL:
        raise PlanError(f"{expr!r} fills nulls with null: give a value")
    value, other = (_days(expr, arg) for arg in args)
    return dated(Typed("fill_null", Kind.INT, value.nullable and other.nullable, (value, other)))


def _when(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if args[0].kind is not Kind.BOOL:
        raise _no_date(expr)
    chosen, other = (_days(expr, arg) for arg in args[1:])
    return dated(choice(args[0], chosen, other))


def _cast(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    days = _days(expr, args[0])
    if expr.value == "str":
        return find("date.to_text").typed((days,), ())
    if expr.value == "int":
        return days
    raise _no_date(expr)


def _part(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return DAY_PARTS[expr.operation](_days(expr, args[0]))


def _epoch(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    days, unit = _days(expr, args[0]), plain_value(args[1])
    return days if unit == "d" else arithmetic("*", days, DAY // UNITS[unit])


def _date(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if args[0].kind is not Kind.INT:
        raise PlanError(f"{expr!r} takes a time, int nanoseconds, not {args[0].kind.value}")
    return dated(day_of(args[0]))


def _truncate(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    count, unit = map(plain_value, args[1:])
    if unit not in ("d", "w", "mo"):
        raise PlanError(f"{expr!r} is of a date, which has days: use d, w, mo, q or y")
    return dated(_within(truncated_days(_days(expr, args[0]), count, unit)))


def _within(days: Typed) -> Typed:
    """Return days, of which those beyond the calendar fail: a sum overflows there."""
    for beyond in (INT64_MAX - DATE_MOST, INT64_MIN - DATE_LEAST):
        days = arithmetic("-", arithmetic("+", days, beyond), beyond)
    return days


_RULES: dict[str, Callable[[Expr, tuple[Typed, ...]], Typed]] = {
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
}
