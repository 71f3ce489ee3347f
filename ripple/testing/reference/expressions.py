"""Expressions evaluated one row at a time in plain Python: the slow twin of the machine."""

from __future__ import annotations

import datetime as dt
import json
import math
import operator
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.function import Function
from ripple.model.expression.logical_constants import (
    PlainBytes,
    PlainDate,
    PlainDecimal,
    PlainTime,
    PlainUuid,
)
from ripple.model.expression.typed import Kind
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Date,
    DateTime,
    Decimal,
    Dict,
    Float,
    Int,
    Int64,
    List,
    Option,
    String,
    Uuid,
    WideDecimal,
    bare_type,
)
from ripple.testing.reference import decimals, logical
from ripple.testing.reference.failures import CONVERSION, DIVISION, OVERFLOW, WORST, Failed

__all__ = ["Failed", "evaluate", "is_int64", "python_type"]

_OF_KIND = {Kind.FLOAT: float, Kind.INT: int, Kind.BOOL: bool, Kind.TEXT: str}
_PYTHON_TYPES: dict[Any, type] = {
    Float: float,
    Int: int,
    Int64: int,
    Bool: bool,
    String: str,
    Date: dt.date,
    DateTime: dt.datetime,
    Uuid: uuid.UUID,
    Bytes: bytes,
}


def python_type(of: Any) -> Any:
    """Return the Python type of a field type's values, ``object`` for types without operators.

    Of decimals it is their ``Scale``.
    """
    if isinstance(of, Decimal):
        return decimals.Scale(of.scale)
    if isinstance(of, WideDecimal):
        return decimals.Scale(of.scale, is_wide=True)
    return python_type(of.of) if isinstance(of, Option) else _PYTHON_TYPES.get(type(of), object)


@dataclass(frozen=True)
class Items:
    """The kind of lists. of: the Python type of items."""

    of: Any


@dataclass(frozen=True)
class Members:
    """The kind of maps. of: the Python type of values."""

    of: Any


def expression_kind(of: Any) -> Any:
    """Return the kind of a field's values in expressions: ``python_type``, or that of items."""
    bare = bare_type(of)
    if isinstance(bare, Dict):
        return Members(python_type(bare.of))
    return Items(python_type(bare.of)) if isinstance(bare, List) else python_type(of)


def evaluate(expr: Expr, row: Mapping[str, Any], kinds: Mapping[str, type]) -> Any:
    """Return the value, None for null, or Failed.

    row: by field name. kinds: by field name, as :func:`python_type` returns.
    """
    if expr.operation == "col" and isinstance(kinds[expr.value], Members):
        return row[expr.value]  # as it is stored
    kind, value = _evaluate(expr, row, kinds)
    if isinstance(kind, decimals.Scale) and not isinstance(value, Failed) and value is not None:
        units = int(value * 10**kind.digits)
        return format(units + 2**127, "032x") if kind.is_wide else units
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return (value - logical.EPOCH).days if kind is dt.date and isinstance(value, dt.date) else value


def _evaluate(  # noqa: C901, PLR0912  # one case an operation
    expr: Expr, row: Mapping[str, Any], kinds: Mapping[str, type]
) -> tuple[type, Any]:
    if expr.operation == "col":
        return kinds[expr.value], _plain(kinds[expr.value], row[expr.value])
    if expr.operation == "lit" and isinstance(expr.value, (PlainDate, PlainTime)):
        return logical.constant(expr.value)
    if expr.operation == "lit" and isinstance(expr.value, PlainUuid):
        return uuid.UUID, uuid.UUID(expr.value.text)
    if expr.operation == "lit" and isinstance(expr.value, PlainBytes):
        return bytes, bytes.fromhex(expr.value.text)
    if expr.operation == "lit" and isinstance(expr.value, PlainDecimal):
        return decimals.constant(expr.value.digits)
    if expr.operation == "lit":
        return type(expr.value), expr.value
    if expr.operation == "null":
        return type(None), None
    typed = [_evaluate(arg, row, kinds) for arg in expr.args]
    types, args = [kind for kind, _ in typed], [value for _, value in typed]
    if expr.operation.startswith("list."):
        return _of_list(expr.operation, types[0], args)
    if logical.concerned(expr, types):
        return logical.evaluate(expr, types, args)
    if decimals.concerned(expr, types):
        return decimals.evaluate(expr, types, args)
    match expr.operation:
        case "&" | "|":
            return bool, _logic(expr.operation == "|", *args)
        case "is_null":
            return bool, args[0] if isinstance(args[0], Failed) else args[0] is None
        case "fill_null":
            kind = _common(types)
            return kind, _promoted(kind, args[1] if args[0] is None else args[0])
        case "when":
            kind = _common(types[1:])
            if isinstance(args[0], Failed):
                return kind, args[0]
            return kind, _promoted(kind, args[1] if args[0] else args[2])
    kind, compute = _strict(expr, types)
    failures = [arg for arg in args if isinstance(arg, Failed)]
    if failures:
        return kind, max(failures, key=WORST.index)
    if None in args[: operands_of(expr)]:
        return kind, None
    return kind, compute(*args)


def _plain(kind: Any, stored: Any) -> Any:
    """Return a stored value as expressions have it; None stays."""
    if stored is None:
        return None
    if isinstance(kind, decimals.Scale):
        return Fraction(int(stored, 16) - 2**127 if kind.is_wide else stored, 10**kind.digits)
    if isinstance(kind, Items):
        return [_plain(kind.of, one) for one in stored]
    if isinstance(kind, Members):
        return json.loads(stored)
    if kind is dt.date:
        return logical.EPOCH + dt.timedelta(stored)
    if kind is uuid.UUID:
        return uuid.UUID(stored)
    return bytes.fromhex(stored) if kind is bytes else stored


def _of_list(operation: str, kind: Any, args: list[Any]) -> tuple[Any, Any]:
    """Return kind and value of a function of a list."""
    assert isinstance(kind, Items)
    failures = [arg for arg in args if isinstance(arg, Failed)]
    gives = {"list.len": int, "list.contains": bool}.get(operation, kind.of)
    if failures:
        return gives, max(failures, key=WORST.index)
    if None in args:
        return gives, None
    items: list[Any] = args[0]
    match operation:
        case "list.len":
            return int, len(items)
        case "list.get":
            at = args[1]
            return gives, items[at] if -len(items) <= at < len(items) else None
        case "list.contains":
            return bool, any(one == args[1] for one in items)
        case "list.sum":
            return gives, _sum(kind.of, items)
    ordered = sorted(items, key=_place)
    return gives, ordered[0 if operation == "list.min" else -1] if ordered else None


def _place(item: Any) -> Any:
    is_nan = item != item  # noqa: PLR0124 - NaN alone
    return (is_nan, 0 if is_nan else item, math.copysign(1, item) if item == 0.0 else 0)


def _sum(kind: Any, items: list[Any]) -> Any:
    if isinstance(kind, decimals.Scale):
        return kind.fits(sum(items, Fraction(0)))
    if kind is int:
        return _checked(sum(items))
    if not all(map(math.isfinite, items)):
        return sum(one for one in items if not math.isfinite(one))
    exact = sum(map(Fraction, items), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def operands_of(expr: Expr) -> int:
    """Return how many arguments of a strict operation are operands, the others being options."""
    if expr.operation == "**":
        return 2
    try:
        return len(find(expr.operation).takes)
    except KeyError:
        return len(expr.args)


def _logic(decisive: bool, left: Any, right: Any) -> Any:
    if left is decisive or right is decisive:
        return decisive
    failures = [arg for arg in (left, right) if isinstance(arg, Failed)]
    if failures:
        return max(failures, key=WORST.index)
    return None if None in (left, right) else not decisive


def _strict(  # noqa: C901, PLR0912  # one case an operation
    expr: Expr, types: list[type]
) -> tuple[type, Callable[..., Any]]:
    operation = expr.operation
    match operation:
        case "+" | "-" | "*" | "//" | "%" | "least" | "greatest":
            if types == [str, str]:
                return str, lambda a, b: _called(find("str.concat"), a, b)
            if types == [int, int]:
                return int, _INTEGER[operation]
            return float, lambda a, b: _FLOAT[operation](float(a), float(b))
        case "dict.len":
            return int, len
        case "dict.get":
            assert isinstance(types[0], Members)
            return types[0].of, lambda a, key: a.get(key)
        case "dict.contains":
            return bool, lambda a, key: key in a
        case "dict.key":
            return str, lambda a, i: sorted(a)[i] if -len(a) <= i < len(a) else None
        case "/":
            return float, lambda a, b: _divide(float(a), float(b))
        case "**" if float in types:
            return float, lambda a, b: _called(find("pow"), a, b)
        case "hash":
            entry = find("hash.text" if types[0] is str else "hash.value")
            return int, lambda a: _called(entry, a, expr.value)
        case "neg" | "abs":
            apply: Callable[[Any], Any] = operator.neg if operation == "neg" else abs
            return types[0], (lambda a: _checked(apply(a))) if types[0] is int else apply
        case "sqrt":
            return float, lambda a: math.nan if a < 0 else math.sqrt(a)
        case "floor" | "ceil" | "round":
            if types[0] is int:
                return int, lambda a: a
            return float, lambda a, *n: round(a, *n) if n else _rounded(operation, a)
        case "cast" if isinstance(types[0], Members):
            return str, lambda a, *_: json.dumps(a, ensure_ascii=False, separators=(",", ":"))
        case "cast":
            return _cast(expr.value, types[0], strict=len(types) == 1)
        case "is_nan":
            return bool, lambda a: math.isnan(float(a))
        case "is_finite":
            return bool, lambda a: math.isfinite(float(a))
        case "~":
            return bool, lambda a: not a
        case "is_in":
            return bool, lambda a, *values: any(a == value for value in values)
        case "starts_with":
            return bool, lambda a: a.startswith(expr.value)
        case "ends_with":
            return bool, lambda a: a.endswith(expr.value)
        case "contains":
            return bool, lambda a: expr.value in a
    if operation in _COMPARE:
        return bool, _COMPARE[operation]
    entry = find(operation)
    kind = types[0] if entry.gives is None else _OF_KIND[entry.gives]
    return kind, lambda *args: _called(entry, *args)


def _cast(to: str, kind: type, *, strict: bool) -> tuple[type, Callable[..., Any]]:
    if to == "str":
        return str, (lambda a: str(a).lower()) if kind is bool else str
    target = {"float": float, "int": int}[to]
    if kind is str:
        entry = find("str.to_float" if target is float else "str.to_integer")
        return target, lambda a, *_: _called(entry, a, strict)
    if target is float:
        return float, lambda a, *_: float(a)
    return int, lambda a, *_: None if not strict and _to_int(a) is CONVERSION else _to_int(a)


def _called(entry: Function, *args: Any) -> Any:
    assert entry.plain is not None, "decimals are computed as fractions"
    try:
        value = entry.plain(*args)
    except OverflowError:
        return OVERFLOW
    except ValueError as error:
        return Failed(str(error))
    return _checked(value) if type(value) is int else value


def _common(types: list[type]) -> type:
    known = [kind for kind in types if kind is not type(None)]
    return float if float in known else known[0]


def _promoted(kind: type, value: Any) -> Any:
    return float(value) if kind is float and type(value) is int else value


def is_int64(value: int) -> bool:
    """Tell whether a whole number fits 64 bits."""
    return -(2**63) <= value < 2**63


def _checked(value: int) -> Any:
    return value if is_int64(value) else OVERFLOW


def _to_int(value: float | int | bool) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return CONVERSION
    whole = int(value)
    return whole if is_int64(whole) else CONVERSION


def _divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _fused(a: float, b: float, exact: Any) -> Any:
    """Return the exact result in fractions, rounded once: an oracle that shares nothing with C."""
    value = exact(Fraction(a), Fraction(b))
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _exactly(a: float, b: float, plain: Any, exact: Any) -> float:
    computed = plain(a, b)
    if math.isfinite(a) and math.isfinite(b):
        once = _fused(a, b, exact)
        assert once == computed, (a, b, once, computed)
    return float(computed)


def _least(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return min((a, math.copysign(1, a)), (b, math.copysign(1, b)))[0]


def _rounded(operation: str, a: float) -> float:
    if not math.isfinite(a):
        return a
    apply: Any = {"floor": math.floor, "ceil": math.ceil, "round": round}[operation]
    return math.copysign(float(apply(a)), a) if apply(a) == 0 else float(apply(a))


_INTEGER: dict[str, Any] = {
    "+": lambda a, b: _checked(a + b),
    "-": lambda a, b: _checked(a - b),
    "*": lambda a, b: _checked(a * b),
    "//": lambda a, b: DIVISION if b == 0 else _checked(a // b),
    "%": lambda a, b: DIVISION if b == 0 else a % b,
    "least": min,
    "greatest": max,
}
_FLOAT: dict[str, Any] = {
    "+": lambda a, b: _exactly(a, b, lambda x, y: x + y, lambda x, y: x + y),
    "-": lambda a, b: _exactly(a, b, lambda x, y: x - y, lambda x, y: x - y),
    "*": lambda a, b: _exactly(a, b, lambda x, y: x * y, lambda x, y: x * y),
    "//": lambda a, b: a // b if b != 0 else _divide(a, b),
    "%": lambda a, b: a % b if b != 0 else math.nan,
    "least": _least,
    "greatest": lambda a, b: -_least(-a, -b),
}
_COMPARE: dict[str, Any] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
