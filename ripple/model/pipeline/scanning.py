"""Nodes with a state by key, which a user's function changes row by row: of ``.scan(...)``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError, SchemaError
from ripple.model.pipeline.checks import (
    check_new_field,
    check_result_field,
    dividing_fields,
    record_of,
    type_text,
)
from ripple.model.pipeline.draft import need_time
from ripple.model.pipeline.nodes import Scan, type_of, types_of
from ripple.model.records.members import members_of
from ripple.model.schema.columns import fitted
from ripple.model.schema.types import Bool, Float, Int, Int64, String, bare_type
from ripple.model.window.duration import duration_ns
from ripple.model.window.spec import LATENESS_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft
    from ripple.model.pipeline.nodes import Fields
    from ripple.model.schema.types import Field, FieldType, Schema

_STATE_TYPES = (String, Int, Int64, Bool, Float)


def scan_of(
    name: str,
    draft: Draft,
    key: Operand | Sequence[Operand],
    *,
    state: type,
    step: Callable[[Any, Any], Any],
    into: type | Schema,
    settled: bool,
    lateness: str | int | None,
    ttl: str | int | None,
) -> Scan:
    """Return the node of a ``.scan(...)`` over the draft's rows.

    Raises PlanError for rows without an order in time, and for arguments at fault.
    """
    need_time(draft, "rows are taken in the order of event time")
    if draft.finals:
        raise PlanError(
            f"rows of {draft.at!r} are told apart by the keys and windows of {draft.finals!r}, not "
            "as records: put it before that fold"
        )
    fields = dividing_fields(key, draft.fields)
    if not fields:
        raise PlanError("key is missing: name the field, or fields, whose rows have one state")
    if settled is not True:
        raise PlanError(
            f"settled is {shown(settled)}, but a row is given once, when none can precede it any "
            "more: say settled=True"
        )
    if not callable(step):
        raise PlanError(f"step takes a function of a state and a row, not {shown(step)}")
    of_state, initial = _state_of(state)
    into_class, schema = record_of(into, "into")
    if draft.is_settled and lateness is not None:
        raise PlanError(f"the rows of {draft.root!r} are never late: leave lateness= out")
    if lateness is None:
        lateness = 0 if draft.is_settled else LATENESS_DEFAULT
    lateness_ns = duration_ns(lateness, "lateness")
    ttl_ns = None if ttl is None else duration_ns(ttl, "ttl")
    if ttl_ns == 0:
        raise PlanError("ttl is 0, and no state would last until the next row: take stateless .map")
    return Scan(
        name,
        fields,
        step,
        state,
        of_state,
        initial,
        draft.row,
        into_class,
        schema,
        ttl_ns,
        lateness_ns,
        draft.fields,
        _shown(fields, schema),
        draft.below(name),
        draft.at,
    )


def _shown(key: Fields, schema: Schema) -> Fields:
    """Return the fields of the rows: the key, then the others of ``into``. Raises PlanError."""
    types = types_of(key)
    for field in schema.fields:
        check_result_field(field.name)
        check_new_field(field.name, ())
        if field.name in types and _kind(type_of(field)) != _kind(types[field.name]):
            raise PlanError(
                f"into: {field.name!r} is the key, which is {type_text(types[field.name])} and not "
                f"{type_text(type_of(field))}: leave it out, since each row has its key anyway, or "
                "choose another name"
            )
    return (*key, *(field for field in schema.fields if field.name not in types))


def _kind(of: FieldType) -> FieldType:
    """Return the type of a key's values: integers are of one, whatever they are declared as."""
    return Int64() if isinstance(of, Int) else of


def _state_of(state: type) -> tuple[Fields, tuple[Any, ...]]:
    """Return the fields of a state, and their defaults. Raises PlanError."""
    if not isinstance(state, type) or not dataclasses.is_dataclass(state):
        raise PlanError(
            f"state takes a dataclass in which every field has a default, not {shown(state)}"
        )
    _, schema = record_of(state, "state")
    members = {one.name: one for one in members_of(state)}
    for field in schema.fields:
        if not isinstance(bare_type(field.type), _STATE_TYPES):
            raise PlanError(
                f"state: {state.__name__}.{field.name} is {type_text(field.type)}, and a state "
                "holds numbers, texts and booleans: write a field for each of its values"
            )
        member = members[field.name]
        if not member.default_none and not member.default_other:
            raise PlanError(
                f"state: {state.__name__}.{field.name} has no default, and the first row of a key "
                f"finds one: write {field.name}: ... = 0, or what it begins with"
            )
    try:
        first = state()
    except Exception as error:  # any error of a user's class
        raise PlanError(
            f"state: {state.__name__}() raised {type(error).__name__}: {error}"
        ) from error
    return schema.fields, tuple(_default(state, first, field) for field in schema.fields)


def _default(state: type, first: Any, field: Field) -> Any:
    """Return the default of a field as it is stored. Raises PlanError."""
    what, value = f"the default of {state.__name__}.{field.name}", getattr(first, field.name)
    try:
        found = fitted([value], type_of(field), what, 1)
    except SchemaError as error:
        raise PlanError(f"state: {error}") from error
    for reason in found.misfits.values():
        raise PlanError(f"state: {reason}")
    if value is None:
        if not field.optional:
            raise PlanError(f"state: {what} is None, and its type does not say so: write | None")
        return None
    values = found.values
    return values[0] if isinstance(values, list) else values[0].item()
