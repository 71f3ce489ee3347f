"""Steps that make rows of each row: expressions, conditions and functions, checked.

Each function returns the step over the draft's rows, and raises PlanError for one that cannot be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Operand, as_operand
from ripple.model.expression.typed import Kind
from ripple.model.pipeline.checks import blaming_field, check_new_field, kept_first, record_of
from ripple.model.pipeline.nodes import Derive, Filter, FlatMap, Map, types_of
from ripple.model.schema.types import Field

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
    name: str, draft: Draft, function: Callable[[Any], Iterable[Any]], *, into: type | Schema
) -> FlatMap:
    """Return the step of a ``.flat_map(...)``."""
    _need_function(function)
    if draft.is_held:
        raise PlanError(
            "rows of one event are told apart before: put it before .distinct, .ask and joins"
        )
    cls, schema = record_of(into, "into")
    at, key, fields = draft.at, draft.below(name), schema.fields
    return FlatMap(name, function, draft.row, cls, schema, draft.fields, fields, key, at)


def _need_function(function: object) -> None:
    if not callable(function):
        raise PlanError(f"it takes a function, not {shown(function)}")
