"""The type rules of decimals of up to 38 digits: they become functions of their stored texts.

Such a decimal is ``wide`` of a tree of a text, with its scale as the value. Scales follow
``decimal_rules``; all is exact in 38 digits, or the row fails. Narrow operands become wide ones.
"""

from __future__ import annotations

from collections.abc import Callable

from ripple.core.errors import PlanError
from ripple.model.expression.decimal_rules import (
    finer_than,
    need_scale,
    no_decimal,
    no_division,
    no_operand,
)
from ripple.model.expression.expr import INT64_MAX, Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import choice, comparison, whole
from ripple.model.expression.program import NO_ROOM, OVERFLOWN
from ripple.model.expression.typed import (
    LOGICAL_CASTS,
    Kind,
    Literal,
    Typed,
    equal_to_any,
    filled,
    need_no_null,
    plain_value,
    text_test,
)
from ripple.model.schema.logical.wide_decimals import stored_text
from ripple.model.schema.types import PRECISION_OTHERS, Decimal, WideDecimal


def wide_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation on such decimals; raises PlanError where there is none."""
    rule = _RULES.get(expr.operation)
    if rule is None:
        raise no_decimal(expr)
    return rule(expr, args)


def _wide(text: Typed, scale: int) -> Typed:
    return Typed("wide", Kind.WIDE, text.nullable, (text,), scale)


def _called(name: str, args: tuple[Typed, ...], *options: object) -> Typed:
    return find(f"wide.{name}").typed(args, options)


def _cast_called(name: str, text: Typed, *options: object) -> Typed:
    """Return a function. Its last option is strict; otherwise the result is nullable."""
    found = _called(name, (text,), *options)
    return Typed(found.operation, found.kind, text.nullable or not options[-1], (text,), options)


def wide_constant(units: int, scale: int) -> Typed:
    """Return a constant, from its units of 10 ** -scale."""
    return _wide(_stored(units), scale)


def _stored(units: int) -> Typed:
    return Typed("lit", Kind.TEXT, nullable=False, value=Literal(stored_text(units)))


def _scale_of(expr: Expr, arg: Typed) -> int:
    """Return an operand's scale: an integer has no digits behind the point."""
    if arg.kind in (Kind.WIDE, Kind.DECIMAL):
        return int(arg.value)
    if arg.kind in (Kind.INT, Kind.NULL):
        return 0
    raise no_operand(expr, arg, WideDecimal(PRECISION_OTHERS, 4))


def _text(expr: Expr, arg: Typed, scale: int) -> Typed:
    """Return the stored text of an operand, in its own or a larger scale."""
    digits = scale - _scale_of(expr, arg)
    if arg.kind is Kind.NULL:
        return Typed("null", Kind.TEXT, nullable=True)
    if arg.kind is Kind.WIDE:
        return _called("finer", arg.args, digits) if digits else arg.args[0]
    units = arg.args[0] if arg.kind is Kind.DECIMAL else arg
    if units.operation != "lit":
        return _called("of_units", (units,), digits)
    number = units.value.value * 10**digits
    if abs(number) >= 10**PRECISION_OTHERS:
        raise PlanError(
            f"{expr!r}: a constant with {digits} more digits does not fit into"
            f" {PRECISION_OTHERS}: .cast(rp.Decimal(38, 0)) the decimal's text, or .round(n) it"
        )
    return _stored(number)


def wide_item(expr: Expr, arg: Typed, of: WideDecimal) -> Typed:
    """Return the stored text of an operand, as a list of decimals stores its items."""
    scale = _scale_of(expr, arg)
    if scale > of.scale:
        raise finer_than(expr, scale, of)
    return _text(expr, arg, of.scale)


def _aligned(expr: Expr, args: tuple[Typed, ...]) -> tuple[Typed, Typed, int]:
    scale = max(_scale_of(expr, arg) for arg in args)
    left, right = (_text(expr, arg, scale) for arg in args)
    return left, right, scale


def _sum(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right, scale = _aligned(expr, args)
    return _wide(_called("add" if expr.operation == "+" else "subtract", (left, right)), scale)


def _extreme(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    left, right, scale = _aligned(expr, args)
    is_left = text_test("<=" if expr.operation == "least" else ">=", (left, right))
    # Null where one of both is, as of numbers.
    return _wide(choice(is_left, left, choice(_is_there(left), right, left)), scale)


def _is_there(text: Typed) -> Typed:
    null = text_test("is_null", (text,))
    return Typed("~", Kind.BOOL, nullable=False, args=(null,))


def _product(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    one, other = (_scale_of(expr, arg) for arg in args)
    need_scale(expr, one + other, PRECISION_OTHERS)
    texts = (_text(expr, args[0], one), _text(expr, args[1], other))
    return _wide(_called("multiply", texts), one + other)


def _quotient(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    of_value, of_divisor = (_scale_of(expr, arg) for arg in args[:2])
    scale, rounding = map(plain_value, args[2:])
    texts = (_text(expr, args[0], of_value), _text(expr, args[1], of_divisor))
    return _wide(_called("divide", texts, scale + of_divisor - of_value, rounding), scale)


def _sign(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    name = "negative" if expr.operation == "neg" else "magnitude"
    return _wide(_called(name, args[0].args), args[0].value)


def _round(_expr: Expr, args: tuple[Typed, ...]) -> Typed:
    scale = args[0].value
    digits = plain_value(args[1]) if args[1:] else 0
    if digits >= scale:
        return args[0]
    return _wide(_called("round", args[0].args, scale - digits, "half_even"), digits)


def _is_null(_expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return text_test("is_null", args[0].args)


def _fill_null(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    value, fallback, scale = _aligned(expr, args)
    return _wide(filled(expr, value, fallback), scale)


def _when(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    if args[0].kind is not Kind.BOOL:
        raise no_decimal(expr)
    chosen, other, scale = _aligned(expr, args[1:])
    return _wide(choice(args[0], chosen, other), scale)


def _cast(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    value, strict = args[0], len(args) == 1
    if isinstance(expr.value, WideDecimal):
        return _cast_to(expr, value, expr.value, strict=strict)
    text, scale = value.args[0], value.value
    if isinstance(expr.value, Decimal):
        if scale > expr.value.scale:
            raise finer_than(expr, scale, expr.value)
        options = (expr.value.scale - scale, 10**expr.value.precision - 1, NO_ROOM, strict)
        units = _cast_called("to_units", text, *options)
        return Typed("scaled", Kind.DECIMAL, units.nullable, (units,), expr.value.scale)
    if expr.value == "str":
        return _called("to_text", (text,), scale)
    if expr.value == "float":
        return _called("to_float", (text,), scale)
    if expr.value == "int":
        if scale:
            text = _called("round", (text,), scale, "down")
        return _cast_called("to_units", text, 0, INT64_MAX, OVERFLOWN, strict)
    if expr.value in LOGICAL_CASTS:
        raise PlanError(f"{expr!r} takes no decimal: .cast(int) it first")
    raise no_decimal(expr)


def _cast_to(expr: Expr, value: Typed, to: WideDecimal, *, strict: bool) -> Typed:
    if value.kind in (Kind.TEXT, Kind.FLOAT):
        name = "of_text" if value.kind is Kind.TEXT else "of_float"
        return _wide(_called(name, (value,), to.precision, to.scale, strict), to.scale)
    scale = _scale_of(expr, value)
    if scale > to.scale:
        raise finer_than(expr, scale, to)
    text = _text(expr, value, scale)
    return _wide(_cast_called("fitted", text, to.scale - scale, to.precision, strict), to.scale)


def _compare(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return _compared(expr, expr.operation, args)


def _compared(expr: Expr, operation: str, args: tuple[Typed, ...]) -> Typed:
    """Compare by value, without rescaling, so that no operand overflows."""
    need_no_null(expr, args, Kind.DECIMAL.value)
    one, other = (_scale_of(expr, arg) for arg in args)
    if one == other or _is_constant(args[0], other) or _is_constant(args[1], one):
        left, right, _ = _aligned(expr, args)
        return text_test(operation, (left, right))
    scale = max(one, other)
    texts = (_text(expr, args[0], one), _text(expr, args[1], other))
    return comparison(operation, _called("order", texts, scale - one, scale - other), whole(0))


def _is_constant(arg: Typed, scale: int) -> bool:
    """Tell whether a constant has its text in another one's scale."""
    units = arg.args[0] if arg.kind is Kind.DECIMAL else arg
    if units.operation != "lit" or units.kind is not Kind.INT:
        return False
    own = int(arg.value) if arg.kind is Kind.DECIMAL else 0
    return own <= scale and abs(units.value.value) * 10 ** (scale - own) < 10**PRECISION_OTHERS


def _is_in(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    return equal_to_any(args, lambda *pair: _compared(expr, "==", pair))


_RULES: dict[str, Callable[[Expr, tuple[Typed, ...]], Typed]] = {
    **dict.fromkeys(("+", "-"), _sum),
    **dict.fromkeys(("least", "greatest"), _extreme),
    "*": _product,
    "divide": _quotient,
    **dict.fromkeys(("/", "//", "%"), no_division),
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _compare),
    "is_in": _is_in,
    **dict.fromkeys(("neg", "abs"), _sign),
    "round": _round,
    "is_null": _is_null,
    "fill_null": _fill_null,
    "when": _when,
    "cast": _cast,
}
