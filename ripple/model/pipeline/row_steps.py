"""Steps that make rows of each row: expressions, conditions and functions, checked.

Each function returns the step over the draft's rows, and raises PlanError for one that cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_bool, shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Operand, as_operand
from ripple.model.expression.typed import Kind, unknown_field
from ripple.model.pipeline.checks import blaming_field, check_new_field, kept_first, record_of
from ripple.model.pipeline.description import type_text
from ripple.model.pipeline.nodes import Derive, Explode, Filter, FlatMap, Map, types_of
from ripple.model.schema.logical.lists import is_read
from ripple.model.schema.types import Dict, Field, FieldType, List, String, bare_type

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
    into: type | Schema | str | Sequence[str] | None,
) -> FlatMap | Explode:
    """Return the step of a ``.flat_map(...)``."""
    if not isinstance(function, Expr):
        _need_function(function)
    if draft.is_held:
        raise PlanError(
            "rows of one event are told apart before: put it before .distinct, .scan, .ask and "
            "joins"
        )
    if isinstance(function, Expr):
        return _explode_of(name, draft, function, into)
    if into is None or (isinstance(into, Sequence) and not isinstance(into, type)):
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
    kinds = _items_of(of)
    if not kinds:
        found = f"is {type_text(types[column])}" if not isinstance(of, List) else "has other items"
        raise PlanError(
            f"{items!r} makes a row of each item of a list or a map, such as tags: list[str], and "
            f"the field {column!r} {found}: use a function"
        )
    names = _item_names(column, into, len(kinds))
    for at, one in enumerate(names):
        check_new_field(one, [*(other for other in types if other != column), *names[:at]])
    added = [Field(one, kind) for one, kind in zip(names, kinds, strict=True)]
    out: list[Field] = []
    for field in draft.fields:
        out += added if field.name == column else [field]
    return Explode(name, column, names, draft.fields, tuple(out), draft.below(name), draft.at)


def _items_of(of: FieldType) -> tuple[FieldType, ...]:
    """Return the types of the fields of an item, none for a type without items."""
    if isinstance(of, Dict):
        return String(), of.of
    return (of.of,) if isinstance(of, List) and is_read(of) else ()


def _item_names(column: str, into: object, count: int) -> tuple[str, ...]:
    if into is None:
        return (column,) if count == 1 else ("key", "value")
    names = (into,) if isinstance(into, str) else into
    if (
        not isinstance(names, (tuple, list))
        or len(names) != count
        or not all(isinstance(one, str) for one in names)
    ):
        wanted = "a text" if count == 1 else "and its key, two texts"
        raise PlanError(f"into= names the field of the item, {wanted}, not {shown(into)}")
    return tuple(names)


def _need_function(function: object) -> None:
    if not callable(function):
        raise PlanError(f"it takes a function, not {shown(function)}")
