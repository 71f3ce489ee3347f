"""The type rules of lists: plain fields, with items that have the operators of their type."""

from __future__ import annotations

from collections.abc import Mapping

from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.lists import name_of_get
from ripple.model.expression.typed import Kind, Typed, kind_of, plain_value, seen_as
from ripple.model.schema.logical.lists import is_read
from ripple.model.schema.types import Decimal, FieldType, List, WideDecimal, bare_type

_NUMBERS = (Kind.FLOAT, Kind.INT)


def list_typed(expr: Expr, args: tuple[Typed, ...], fields: Mapping[str, FieldType]) -> Typed:
    """Return a function of a list; raises PlanError for another operand."""
    column, *others = args
    of = bare_type(fields[column.value]) if column.operation == "col" else None
    if not isinstance(of, List):
        raise PlanError(f"{expr!r} takes a field that is a list, such as tags: list[str]")
    if expr.operation == "list.len":
        return find("list.len").typed((column,), ())
    if not is_read(of):
        raise PlanError(
            f"{expr!r} takes a list of numbers, texts, truth values, dates, times, decimals, UUIDs"
            " or bytes: take the item in a .map"
        )
    kind = kind_of(of.of)[0]
    if expr.operation == "list.get":
        entry = find(name_of_get(kind))
        return seen_as(entry.typed((column,), tuple(map(plain_value, others))), of.of)
    if expr.operation == "list.contains":
        wanted = _as_item(expr, others[0], of.of, kind)
        return find(f"list.contains.{wanted.kind.name.lower()}").typed((column, wanted), ())
    if expr.operation == "list.sum":
        return _sum(expr, column, of.of)
    if kind is Kind.BOOL:
        raise PlanError(f"{expr!r} takes no list of truth values: use .list.contains(True)")
    function = find(f"{expr.operation}.{kind.name.lower()}")
    return seen_as(function.typed((column,), ()), of.of)


def _sum(expr: Expr, column: Typed, of: FieldType) -> Typed:
    if isinstance(of, WideDecimal):
        return seen_as(find("list.sum.wide").typed((column,), ()), of)
    if isinstance(of, Decimal) or seen_as(column, of) is column:
        kind = kind_of(of)[0]
        if kind in _NUMBERS:
            return seen_as(find(f"list.sum.{kind.name.lower()}").typed((column,), ()), of)
    raise PlanError(f"{expr!r} takes a list of numbers or decimals: of others there is no sum")


def _as_item(expr: Expr, arg: Typed, of: FieldType, kind: Kind) -> Typed:
    """Return an operand as lists store their items; raises PlanError for one of another type."""
    if arg.kind is Kind.NULL:
        raise PlanError(f"{expr!r} looks for null, and lists of a source have none")
    if isinstance(of, (Decimal, WideDecimal)):
        from ripple.model.expression.decimal_rules import decimal_item  # noqa: PLC0415 - most have none
        from ripple.model.expression.wide_rules import wide_item  # noqa: PLC0415 - likewise

        if isinstance(of, Decimal):
            return decimal_item(expr, arg, of)
        return wide_item(expr, arg, of)
    wanted = seen_as(Typed("null", kind, nullable=True), of).kind
    if arg.kind is not wanted:
        if arg.kind is Kind.INT and wanted is Kind.FLOAT:
            return Typed("float", Kind.FLOAT, arg.nullable, (arg,))
        raise PlanError(f"{expr!r} looks for {arg.kind.value} in a list of {wanted.value}")
    return arg.args[0] if arg.operation == "logical" else arg
