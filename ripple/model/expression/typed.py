"""Type checking: an expression and the fields of a row become a tree in which types are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.expression.expr import POWER_MAX, Expr
from ripple.model.expression.logical_constants import (
    PlainBytes,
    PlainDate,
    PlainDecimal,
    PlainTime,
    PlainUuid,
)
from ripple.model.schema.types import (
    Bool,
    Bytes,
    Date,
    DateTime,
    Decimal,
    Dict,
    FieldType,
    Float,
    Int,
    Int64,
    Logical,
    LogicalText,
    Option,
    String,
    Uuid,
    WideDecimal,
    bare_type,
)


class Kind(Enum):
    """The types that the machine distinguishes; the value is the name in messages."""

    FLOAT = "a float"
    INT = "an int"
    BOOL = "a bool"
    TEXT = "a text"
    DECIMAL = "a decimal"
    DATE = "a date"
    TIME = "a time"
    UUID = "a UUID"
    BYTES = "bytes"
    WIDE = "a wide decimal"
    MAP = "a map"
    NULL = "null"
    OTHER = "a value without operators"

    __hash__ = object.__hash__  # Enum's own is a Python call, in every look-up of every batch


FIELD_TYPES: dict[Kind, FieldType] = {
    Kind.FLOAT: Float(),
    Kind.INT: Int64(),
    Kind.BOOL: Bool(),
    Kind.TEXT: String(),
    Kind.DATE: Date(),
    Kind.TIME: DateTime(),
    Kind.UUID: Uuid(),
    Kind.BYTES: Bytes(),
}

_LOGICAL_KINDS: dict[type, Kind] = {
    Date: Kind.DATE,
    DateTime: Kind.TIME,
    Uuid: Kind.UUID,
    Bytes: Kind.BYTES,
}
STORED_TEXTS = frozenset({Kind.UUID, Kind.BYTES})
"""The kinds of values other than text that are stored as texts."""
_NUMBERS = (Kind.FLOAT, Kind.INT)
LOGICAL_CASTS = {"date": Kind.DATE, "datetime": Kind.TIME}
"""The results of ``.cast`` of an integer, by target."""
UUID_CAST = "UUID"
"""The target of ``.cast(uuid.UUID)``."""
_TEXT_OF = {
    Kind.INT: "str.of_integer",
    Kind.FLOAT: "str.of_float",
    Kind.BOOL: "str.of_bool",
}

TYPED_DEPTH_MAX = 300  # with those that formulas have: the limit of recursion over a tree


# Invariants: the kinds of ``args`` are what ``operation`` takes, so that nothing is checked
# again later; conversions from int to float stand in the tree as ``float``; a ``nullable=False``
# tree is never null in a row with fields as declared. A formula uses its operand many times, so
# that formulas of formulas are small graphs and trees without end: none is walked as a tree.
@frozen
class Typed:
    """An operation with checked operands. Equal ones compute the same.

    digest: of all that is in it, by which it is compared.
    """

    operation: str = field(compare=False)
    kind: Kind = field(compare=False)
    nullable: bool = field(compare=False)
    args: tuple[Typed, ...] = field(default=(), compare=False, repr=False)
    value: Any = field(default=None, compare=False)
    digest: bytes = field(init=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        depth = 1 + max((arg.depth for arg in self.args), default=0)
        if depth > TYPED_DEPTH_MAX:
            raise PlanError(
                f"an expression has more than {TYPED_DEPTH_MAX} operations inside each other:"
                " compute a part of it in an earlier .derive(...)"
            )
        object.__setattr__(self, "depth", depth)
        args = [arg.digest for arg in self.args]
        content = (self.operation, self.kind.name, self.nullable, args, self.value)
        digest = blake2b(repr(content).encode(), digest_size=16).digest()
        object.__setattr__(self, "digest", digest)


def typed(expr: Expr, fields: Mapping[str, FieldType]) -> Typed:
    """Return the checked form of ``expr`` over a row of ``fields``; raises ``PlanError``."""
    return _Checker(fields).check(expr)


def kind_of(field_type: FieldType) -> tuple[Kind, bool]:
    """Return the kind of a field's values and whether they may be null."""
    if isinstance(field_type, Option):
        return kind_of(field_type.of)[0], True
    if isinstance(field_type, Float):
        return Kind.FLOAT, False
    if isinstance(field_type, (String, LogicalText)):
        return Kind.TEXT, False
    if isinstance(field_type, (Int, Int64, Logical)):
        return Kind.INT, False
    if isinstance(field_type, Bool):
        return Kind.BOOL, False
    return Kind.OTHER, False


def seen_as(stored: Typed, of: FieldType) -> Typed:
    """Return a value of a type from a tree of its stored form: of another type, the tree itself."""
    if isinstance(of, Decimal):
        return Typed("scaled", Kind.DECIMAL, stored.nullable, (stored,), of.scale)
    if isinstance(of, WideDecimal):
        return Typed("wide", Kind.WIDE, stored.nullable, (stored,), of.scale)
    if isinstance(of, Dict):
        return Typed("logical", Kind.MAP, stored.nullable, (stored,), of.of)
    logical = _LOGICAL_KINDS.get(type(of))
    return stored if logical is None else Typed("logical", logical, stored.nullable, (stored,))


def unknown_field(name: str, fields: Mapping[str, Any]) -> PlanError:
    """Return the error for an unknown field, with the known ones and a suggestion."""
    import difflib  # noqa: PLC0415 - only where something is wrong

    inner = [one for one in fields if isinstance(name, str) and one.startswith(f"{name}.")]
    if inner:
        return PlanError(f"{shown(name)} is a record: name one of its fields, {', '.join(inner)}")
    near = difflib.get_close_matches(name, fields, n=1) if isinstance(name, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(fields) if fields else "none"
    return PlanError(f"there is no field {shown(name)}.{hint} The fields are: {listed}")


if TYPE_CHECKING:
    from ripple.model.expression.functions.function import Function

_Rule: TypeAlias = "Callable[[_Checker, Expr, tuple[Typed, ...]], Typed]"


@frozen
class _Checker:
    fields: Mapping[str, FieldType]

    def check(self, expr: Expr) -> Typed:
        if expr.operation == "col":
            return self.field(expr)
        args = tuple(self.check(arg) for arg in expr.args)
        if expr.operation.startswith("list."):
            # Made of what is here, and most expressions have none.
            from ripple.model.expression.list_rules import list_typed  # noqa: PLC0415

            return list_typed(expr, args, self.fields)
        if isinstance(expr.value, WideDecimal) or any(arg.kind is Kind.WIDE for arg in args):
            from ripple.model.expression.wide_rules import wide_typed  # noqa: PLC0415 - most have none

            return wide_typed(expr, args)
        if _has_decimals(expr, args):
            from ripple.model.expression.decimal_rules import decimal_typed  # noqa: PLC0415 - likewise

            return decimal_typed(expr, args)
        if expr.operation.startswith("dict.") or any(arg.kind is Kind.MAP for arg in args):
            from ripple.model.expression.map_rules import map_typed  # noqa: PLC0415 - likewise

            return map_typed(expr, args)
        if _has_stored_texts(expr, args):
            from ripple.model.expression.stored_text_rules import stored_text_typed  # noqa: PLC0415 - likewise

            return stored_text_typed(expr, args)
        if _has_logical(expr, args):
            from ripple.model.expression.logical_rules import logical_typed  # noqa: PLC0415 - likewise

            return logical_typed(expr, args)
        rule = _RULES.get(expr.operation, _Checker.function)
        return rule(self, expr, args)

    def field(self, expr: Expr) -> Typed:
        if expr.value not in self.fields:
            raise unknown_field(expr.value, self.fields)
        field_type = self.fields[expr.value]
        kind, nullable = kind_of(field_type)
        return seen_as(Typed("col", kind, nullable, (), expr.value), bare_type(field_type))

    def function(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        entry = _entry(expr.operation)
        operands, options = args[: len(entry.takes)], args[len(entry.takes) :]
        for operand, kinds in zip(operands, entry.takes, strict=True):
            _require(expr, (operand,), kinds)
        return entry.typed(operands, tuple(map(plain_value, options)))

    def literal(self, expr: Expr, _args: tuple[Typed, ...]) -> Typed:
        kinds = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT, str: Kind.TEXT}
        # The canonical payload separates 1 from 1.0 and True, and 0.0 from -0.0, where == does not.
        return Typed("lit", kinds[type(expr.value)], False, (), Literal(expr.value))

    def null(self, _expr: Expr, _args: tuple[Typed, ...]) -> Typed:
        return Typed("null", Kind.NULL, True)

    def arithmetic(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        if expr.operation == "+" and any(arg.kind is Kind.TEXT for arg in args):
            whole = any(arg.kind is Kind.INT for arg in args)
            _require(expr, args, (Kind.TEXT,), "; use .cast(str)" if whole else "")
            return _entry("str.concat").typed(args, ())
        _require(expr, args, _NUMBERS)
        left, right = _promoted(args)
        return Typed(expr.operation, left.kind, _any_null(args), (left, right))

    def divide(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        left, right = (_as_float(arg) for arg in args)
        return Typed("/", Kind.FLOAT, _any_null(args), (left, right))

    def power(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        base, exponent = args
        if base.kind is Kind.FLOAT or exponent.kind is Kind.FLOAT:
            return _entry("pow").typed(args, ())
        if exponent.operation != "lit" or not 0 <= exponent.value.value <= POWER_MAX:
            raise PlanError(
                f"{expr!r} is no integer for each exponent: an integer takes a plain one from 0 to"
                f" {POWER_MAX}; for a float write {Expr('cast', (expr.args[0],), 'float')!r} ** ..."
            )
        return _entry("**").typed((base,), (exponent.value.value,))

    def hash(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, (*_NUMBERS, Kind.BOOL, Kind.TEXT))
        entry = _entry("hash.text" if args[0].kind is Kind.TEXT else "hash.value")
        return entry.typed(args, (expr.value,))

    def sign(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        return Typed(expr.operation, args[0].kind, args[0].nullable, args)

    def root(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        return Typed("sqrt", Kind.FLOAT, args[0].nullable, (_as_float(args[0]),))

    def rounding(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        if args[0].kind is Kind.INT:
            return args[0]
        if len(args) > 1:
            return _entry("round.decimals").typed(args[:1], (plain_value(args[1]),))
        return Typed(expr.operation, Kind.FLOAT, args[0].nullable, args)

    def cast(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        value, strict = args[0], len(args) == 1
        if expr.value == "str":
            _require(expr, (value,), (*_NUMBERS, Kind.BOOL, Kind.TEXT))
            return (
                _entry(_TEXT_OF[value.kind]).typed((value,), ())
                if value.kind in _TEXT_OF
                else value
            )
        target = Kind.FLOAT if expr.value == "float" else Kind.INT
        if value.kind is Kind.TEXT:
            name = "str.to_float" if target is Kind.FLOAT else "str.to_integer"
            return _entry(name).typed((value,), (strict,))
        _require(expr, (value,), (*_NUMBERS, Kind.BOOL, Kind.TEXT))
        if value.kind is target:
            return value
        cast = Typed(expr.value, target, value.nullable, (value,))
        if strict or value.kind is not Kind.FLOAT:
            return cast
        return _entry("to_integer").typed((value, cast), ())

    def compare(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        left, right = args
        same = left.kind is right.kind
        numbers = left.kind in _NUMBERS and right.kind in _NUMBERS
        equality = expr.operation in ("==", "!=")
        if not (numbers or (same and (left.kind is Kind.TEXT or (equality and _is_bool(left))))):
            hint = "; use .is_null()" if Kind.NULL in (left.kind, right.kind) else ""
            hint = hint or _way_out(left) or _way_out(right)
            raise PlanError(f"{expr!r} compares {left.kind.value} with {right.kind.value}{hint}")
        if left.kind is Kind.TEXT:
            return text_test(expr.operation, args)
        return Typed(expr.operation, Kind.BOOL, _any_null(args), args)

    def logic(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(
            expr, args, (Kind.BOOL,), "; put each comparison in parentheses: (a > 1) & (b < 2)"
        )
        return Typed(expr.operation, Kind.BOOL, _any_null(args), args)

    def is_null(self, _expr: Expr, args: tuple[Typed, ...]) -> Typed:
        if args[0].kind is Kind.TEXT:
            return text_test("is_null", args)
        return Typed("is_null", Kind.BOOL, False, args)

    def float_test(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, _NUMBERS)
        return Typed(expr.operation, Kind.BOOL, args[0].nullable, (_as_float(args[0]),))

    def fill_null(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        return filled(expr, *_unified(expr, args))

    def is_in(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        value, *choices = args
        for choice in choices:
            if choice.kind is Kind.NULL:
                raise PlanError(f"{expr!r} looks for null: use .is_null()")
            if choice.kind is not value.kind and not {choice.kind, value.kind} <= set(_NUMBERS):
                raise PlanError(
                    f"{expr!r} looks for {choice.kind.value} where {value.kind.value} is"
                )
        _require(expr, (value,), (*_NUMBERS, Kind.BOOL, Kind.TEXT))
        if value.kind is Kind.TEXT:
            return text_test("is_in", args)
        return equal_to_any(args, lambda *pair: Typed("==", Kind.BOOL, value.nullable, pair))

    def when(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args[:1], (Kind.BOOL,), " as its condition")
        chosen, other = _unified(expr, args[1:])
        return Typed("when", chosen.kind, _any_null((chosen, other)), (args[0], chosen, other))

    def tested(self, expr: Expr, args: tuple[Typed, ...]) -> Typed:
        _require(expr, args, (Kind.TEXT,))
        return text_test(expr.operation, args, expr.value)


_RULES: dict[str, _Rule] = {
    "lit": _Checker.literal,
    "null": _Checker.null,
    **dict.fromkeys(("+", "-", "*", "//", "%", "least", "greatest"), _Checker.arithmetic),
    "/": _Checker.divide,
    "**": _Checker.power,
    "hash": _Checker.hash,
    **dict.fromkeys(("neg", "abs"), _Checker.sign),
    "sqrt": _Checker.root,
    **dict.fromkeys(("floor", "ceil", "round"), _Checker.rounding),
    "cast": _Checker.cast,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), _Checker.compare),
    **dict.fromkeys(("&", "|", "~"), _Checker.logic),
    "is_null": _Checker.is_null,
    **dict.fromkeys(("is_nan", "is_finite"), _Checker.float_test),
    "fill_null": _Checker.fill_null,
    "is_in": _Checker.is_in,
    "when": _Checker.when,
    **dict.fromkeys(("starts_with", "ends_with", "contains"), _Checker.tested),
}


class Literal:
    """A constant that equals another only if no operation could separate them."""

    __slots__ = ("_identity", "value")

    def __init__(self, value: float | int | str | bool) -> None:
        self.value = value
        self._identity = (type(value).__name__, value.hex() if type(value) is float else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._identity == other._identity

    def __repr__(self) -> str:
        return f"Literal{self._identity!r}"

    def __hash__(self) -> int:
        # Finds a literal again while one expression is compiled; in no result.
        return hash(self._identity)


def _has_decimals(expr: Expr, args: tuple[Typed, ...]) -> bool:
    if expr.operation == "divide" or isinstance(expr.value, (Decimal, PlainDecimal)):
        return True
    return any(arg.kind is Kind.DECIMAL for arg in args)


def _has_stored_texts(expr: Expr, args: tuple[Typed, ...]) -> bool:
    if isinstance(expr.value, (PlainUuid, PlainBytes)) or expr.operation == "str.decode":
        return True
    if expr.operation == "cast" and expr.value == UUID_CAST:
        return True
    return any(arg.kind in STORED_TEXTS for arg in args)


def _has_logical(expr: Expr, args: tuple[Typed, ...]) -> bool:
    if isinstance(expr.value, (PlainDate, PlainTime)):
        return True
    if expr.operation == "dt.date" or (expr.operation == "cast" and expr.value in LOGICAL_CASTS):
        return True
    return any(arg.kind in (Kind.DATE, Kind.TIME) for arg in args)


def _entry(name: str) -> Function:
    # An entry is made of what is above, and most expressions have no function.
    from ripple.model.expression.functions import find  # noqa: PLC0415

    return find(name)


def plain_value(tree: Typed) -> Any:
    """Return the value of a constant, None for null."""
    return None if tree.operation == "null" else tree.value.value


def _require(expr: Expr, args: tuple[Typed, ...], kinds: tuple[Kind, ...], hint: str = "") -> None:
    for arg in args:
        if arg.kind not in kinds:
            wanted = " or ".join(kind.value for kind in kinds)
            raise PlanError(
                f"{expr!r} needs {wanted}{hint}; it was given {arg.kind.value}{_way_out(arg)}"
            )


def _way_out(arg: Typed) -> str:
    """Return the way out for an operand without operators, else ""."""
    return ": of a list, take an item with .list.get(0)" if arg.kind is Kind.OTHER else ""


def _promoted(args: tuple[Typed, ...]) -> tuple[Typed, ...]:
    if all(arg.kind is Kind.INT for arg in args):
        return args
    return tuple(_as_float(arg) for arg in args)


def _as_float(arg: Typed) -> Typed:
    return arg if arg.kind is Kind.FLOAT else Typed("float", Kind.FLOAT, arg.nullable, (arg,))


def _unified(expr: Expr, args: tuple[Typed, ...]) -> tuple[Typed, ...]:
    first, second = args
    if first.kind is second.kind and first.kind not in (Kind.OTHER, Kind.NULL):
        return args
    if first.kind in _NUMBERS and second.kind in _NUMBERS:
        return _promoted(args)
    known = [arg.kind for arg in args if arg.kind not in (Kind.NULL, Kind.OTHER)]
    if len(known) == 1 and Kind.NULL in (first.kind, second.kind):
        # A null takes the type of the other operand.
        return tuple(
            Typed("null", known[0], True) if arg.kind is Kind.NULL else arg for arg in args
        )
    raise PlanError(f"{expr!r} mixes {first.kind.value} and {second.kind.value}")


def equal_to_any(args: tuple[Typed, ...], equal: Callable[[Typed, Typed], Typed]) -> Typed:
    """Return whether the first operand is ``equal`` to one of the other ones."""
    value, *choices = args
    return any_of([equal(value, choice) for choice in dict.fromkeys(choices)])


def any_of(tests: list[Typed]) -> Typed:
    """Return whether any of the tests, one or more, is true: a balanced tree, not a deep one."""
    if len(tests) == 1:
        return tests[0]
    middle = len(tests) // 2
    halves = (any_of(tests[:middle]), any_of(tests[middle:]))
    return Typed("|", Kind.BOOL, _any_null(halves), halves)


def filled(expr: Expr, value: Typed, other: Typed) -> Typed:
    """Return a value, and where it is null another one of its kind. Raises PlanError for null."""
    if other.operation == "null":
        raise PlanError(f"{expr!r} fills nulls with null: give a value")
    nullable = value.nullable and other.nullable
    return Typed("fill_null", value.kind, nullable, (value, other))


def need_no_null(expr: Expr, args: tuple[Typed, ...], word: str) -> None:
    """Raise PlanError for a comparison with a constant null. word: the other operand."""
    if any(arg.kind is Kind.NULL for arg in args):
        raise PlanError(f"{expr!r} compares {word} with null; use .is_null()")


def text_test(operation: str, args: tuple[Typed, ...], value: str | None = None) -> Typed:
    """Return a test of texts."""
    nullable = operation != "is_null" and _any_null(args)
    return Typed(operation, Kind.BOOL, nullable, args, value)


def _any_null(args: tuple[Typed, ...]) -> bool:
    return any(arg.nullable for arg in args)


def _is_bool(arg: Typed) -> bool:
    return arg.kind is Kind.BOOL
