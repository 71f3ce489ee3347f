"""The type rules of values stored as texts: UUIDs and bytes.

Such a value is ``logical`` of a tree of a text, and the kind has its type. Texts sort like their
values, and operations become text operations.
"""

from __future__ import annotations

from collections.abc import Callable

from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.formula import choice
from ripple.model.expression.logical_constants import PlainUuid
from ripple.model.expression.typed import (
    STORED_TEXTS,
    UUID_CAST,
    Kind,
    Literal,
    Typed,
    filled,
    need_no_null,
    plain_value,
    text_test,
)
from ripple.model.schema.bytes_form import HEX

_CONSTANTS = {
    Kind.UUID: "uuid.UUID('123e4567-e89b-12d3-a456-426614174000')",
    Kind.BYTES: "b'abc'",
}
_METHODS = {
    Kind.UUID: ".hash() or, as a text, .cast(str)",
    Kind.BYTES: ".hash(), .bin.size() or, as a text, .bin.encode('base64')",
}


def stored_text_typed(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    """Return an operation on such values; raises PlanError where there is none."""
    kind = next((arg.kind for arg in args if arg.kind in STORED_TEXTS), Kind.BYTES)
    rule = _RULES.get(expr.operation)
    if rule is None:
        raise _no_operand(expr, kind)
    return rule(expr, args, kind)


def _logical(text: Typed, kind: Kind) -> Typed:
    return Typed("logical", kind, text.nullable, (text,))


def _no_operand(expr: Expr, kind: Kind) -> PlanError:
    return PlanError(
        f"{expr!r} takes no {kind.value.removeprefix('a ')}: use comparisons, is_in,"
        f" {_METHODS[kind]}"
    )


def _literal(expr: Expr, _args: tuple[Typed, ...], kind: Kind) -> Typed:
    own = Kind.UUID if isinstance(expr.value, PlainUuid) else kind
    return _logical(Typed("lit", Kind.TEXT, False, (), Literal(expr.value.text)), own)


def _text(expr: Expr, arg: Typed, kind: Kind) -> Typed:
    """Return the text of an operand of a required kind."""
    if arg.kind is kind:
        return arg.args[0]
    if arg.kind is Kind.NULL:
        return Typed("null", Kind.TEXT, nullable=True)
    hint = f": write a constant as {_CONSTANTS[kind]}" if arg.kind is Kind.TEXT else ""
    raise PlanError(f"{expr!r} mixes {kind.value} and {arg.kind.value}{hint}")


def _test(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    need_no_null(expr, args, kind.value)
    return text_test(expr.operation, tuple(_text(expr, arg, kind) for arg in args))


def _fill_null(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    value, other = (_text(expr, arg, kind) for arg in args)
    return _logical(filled(expr, value, other), kind)


def _when(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if args[0].kind is not Kind.BOOL:
        raise _no_operand(expr, kind)
    chosen, other = (_text(expr, arg, kind) for arg in args[1:])
    return _logical(choice(args[0], chosen, other), kind)


def _cast(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if expr.value == UUID_CAST:
        return _cast_to_uuid(expr, args)
    if expr.value != "str" or kind is Kind.BYTES:
        raise _no_operand(expr, kind)
    return _text(expr, args[0], kind)


def _cast_to_uuid(expr: Expr, args: tuple[Typed, ...]) -> Typed:
    value, strict = args[0], len(args) == 1
    if value.kind is Kind.UUID:
        return value
    if value.kind is not Kind.TEXT:
        raise PlanError(f"{expr!r} takes a text of 36 characters, not {value.kind.value}")
    return _logical(find("logical.uuid_of").typed((value,), (strict,)), Kind.UUID)


def _decode(expr: Expr, args: tuple[Typed, ...], _kind: Kind) -> Typed:
    value, options = args[0], tuple(map(plain_value, args[1:]))
    if value.kind is not Kind.TEXT:
        raise PlanError(f"{expr!r} takes a text, not {value.kind.value}")
    return _logical(find("bin.of_text").typed((value,), options), Kind.BYTES)


def _hash(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    return find("hash.text").typed((_text(expr, args[0], kind),), (expr.value,))


def _size(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if kind is not Kind.BYTES:
        raise _no_operand(expr, kind)
    return find("bin.size").typed((_text(expr, args[0], kind),), ())


def _encode(expr: Expr, args: tuple[Typed, ...], kind: Kind) -> Typed:
    if kind is not Kind.BYTES:
        raise _no_operand(expr, kind)
    text = _text(expr, args[0], kind)
    return text if expr.value == HEX else find("bin.base64").typed((text,), ())


_RULES: dict[str, Callable[[Expr, tuple[Typed, ...], Kind], Typed]] = {
    "lit": _literal,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "is_in", "is_null"), _test),
    "fill_null": _fill_null,
    "when": _when,
    "cast": _cast,
    "hash": _hash,
    "bin.size": _size,
    "bin.encode": _encode,
    "str.decode": _decode,
}
