"""The type rules of lists: plain fields, without operators."""

from __future__ import annotations

from collections.abc import Mapping

from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.functions.lists import name_of_get
from ripple.model.expression.typed import Typed, kind_of, plain_value
from ripple.model.schema.logical.lists import is_read
from ripple.model.schema.types import FieldType, List, bare_type


def list_typed(expr: Expr, args: tuple[Typed, ...], fields: Mapping[str, FieldType]) -> Typed:
    """Return a function of a list; raises PlanError for another operand."""
    column, *options = args
    of = bare_type(fields[column.value]) if column.operation == "col" else None
    if not isinstance(of, List):
        raise PlanError(f"{expr!r} takes a field that is a list, such as tags: list[str]")
    if expr.operation == "list.len":
        return find("list.len").typed((column,), ())
    if not is_read(of):
        raise PlanError(
            f"{expr!r} takes a list of numbers, texts or truth values: take the item in a .map"
        )
    entry = find(name_of_get(kind_of(of.of)[0]))
    return entry.typed((column,), tuple(map(plain_value, options)))
