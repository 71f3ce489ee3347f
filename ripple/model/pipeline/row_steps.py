"""Steps that make rows of each row: expressions, conditions and functions, checked.

Each function returns the step over the draft's rows, and raises PlanError for one that cannot be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Operand, as_operand
from ripple.model.expression.typed import Kind, unknown_field
from ripple.model.pipeline.checks import blaming_field, check_new_field, kept_first, record_of
from ripple.model.pipeline.description import type_text
from ripple.model.pipeline.nodes import Derive, Explode, Filter, FlatMap, Map, types_of
from ripple.model.schema.logical.lists import is_read
from ripple.model.schema.types import Field, List, bare_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ripple.model.pipeline.draft import Draft
    from ripple.model.schema.types import Schema


def derive_of(name: str, draft: Draft, fields: Mapping[str, Operand]) -> Derive:
    """Return the step of a ``.derive(...)``."""
    if not fields:
        raise PlanError("it adds nothing: write field=expression")
    types = types_of(draft.fields)
    bound = []
    for field, value in fields.items():
        check_new_field(field, types)
        if isinstance(value, str):
            raise PlanError(
                f"{field}={value!r} is a text: write rp.col({value!r}) for the field or "
                f"rp.lit({value!r}) for the text itself"
            )
        with blaming_field(field):
            bound.append((field, as_operand(value).bind(types)))
    added = tuple(Field(field, item.type) for field, item in bound)
    out = (*draft.fields, *added)
    return Derive(name, tuple(bound), draft.fields, out, draft.below(name), draft.at)


def filter_of(name: str, draft: Draft, condition: Expr | bool) -> Filter:
    """Return the step of a ``.filter(...)``."""
    if not isinstance(condition, Expr):
        raise PlanError(
            f"the condition is the plain value {shown(condition)}: write an expression such as "
            "rp.col('size') > 0"
        )
    bound = condition.bind(types_of(draft.fields))
    if bound.tree.kind is not Kind.BOOL:
        raise PlanError(f"{condition!r} is {bound.tree.kind.value}, not a condition: compare it")
    return Filter(name, bound, draft.fields, draft.fields, draft.below(name), draft.at)


def map_of(
    name: str,
    draft: Draft,
    function: Callable[[Any], Any],
    *,
    into: type | Schema,
    batch: bool,
) -> Map:
    """Return the step of a ``.map(...)``."""
    _need_function(function)
    need_bool("batch", batch)
    cls, schema = record_of(into, "into")
    kept = draft.fold.identity if draft.fold is not None else ()
    out = kept_first(schema, kept, draft.fields)
    row, key, at = draft.row, draft.below(name), draft.at
    return Map(name, function, batch, row, cls, schema, kept, draft.fields, out, key, at)


def flat_map_of(
    name: str,
    draft: Draft,
    function: Callable[[Any], Iterable[Any]] | Expr,
    *,
    into: type | Schema | str | None,
) -> FlatMap | Explode:
    """Return the step of a ``.flat_map(...)``."""
    if not isinstance(function, Expr):
        _need_function(function)
    if draft.is_held:
        raise PlanError(
            "rows of one event are told apart before: put it before .distinct, .ask and joins"
        )
    if isinstance(function, Expr):
        return _explode_of(name, draft, function, into)
    if into is None or isinstance(into, str):
        raise PlanError(f"into is {shown(into)}: a function makes rows of a record class or schema")
    cls, schema = record_of(into, "into")
    at, key, fields = draft.at, draft.below(name), schema.fields
    return FlatMap(name, function, draft.row, cls, schema, draft.fields, fields, key, at)


def _explode_of(name: str, draft: Draft, items: Expr, into: object) -> Explode:
    types = types_of(draft.fields)
    if items.operation != "col":
        raise PlanError(f"{items!r} is no field: .derive it first, or use a function")
    column = items.value
    of = bare_type(types[column]) if column in types else None
    if of is None:
        raise unknown_field(column, types)
    if not isinstance(of, List) or not is_read(of):
        found = f"is {type_text(types[column])}" if not isinstance(of, List) else "has other items"
        raise PlanError(
            f"{items!r} makes a row of each item of a list such as tags: list[str], and the field "
            f"{column!r} {found}: use a function"
        )
    if into is None:
        into = column
    if not isinstance(into, str):
        raise PlanError(f"into= names the field of the item, a text, not {shown(into)}")
    check_new_field(into, [one for one in types if one != column])
    item = Field(into, of.of)
    out = tuple(item if one.name == column else one for one in draft.fields)
    return Explode(name, column, into, draft.fields, out, draft.below(name), draft.at)


def _need_function(function: object) -> None:
    if not callable(function):
        raise PlanError(f"it takes a function, not {shown(function)}")
