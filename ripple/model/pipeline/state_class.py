"""The dataclass of a scan's state: its fields, and their defaults as columns store them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError, SchemaError
from ripple.model.pipeline.checks import record_of, type_text
from ripple.model.pipeline.nodes import type_of
from ripple.model.records.members import members_of
from ripple.model.schema.columns import fitted
from ripple.model.schema.logical.values import numbers_of
from ripple.model.schema.types import (
    Bool,
    Field,
    Float,
    Int,
    Int64,
    List,
    Logical,
    String,
    bare_type,
)

if TYPE_CHECKING:
    from ripple.model.pipeline.nodes import Fields

_STATE_TYPES = (String, Int, Int64, Bool, Float, Logical)


def state_of(state: type) -> tuple[Fields, tuple[Any, ...]]:
    """Return the fields of a state, and their defaults. Raises PlanError."""
    if not isinstance(state, type) or not dataclasses.is_dataclass(state):
        raise PlanError(
            f"state takes a dataclass in which every field has a default, not {shown(state)}"
        )
    _, schema = record_of(state, "state")
    members = {one.name: one for one in members_of(state)}
    for field in schema.fields:
        bare = bare_type(field.type)
        of = bare.of if isinstance(bare, List) else bare
        if not isinstance(of, _STATE_TYPES):
            raise PlanError(
                f"state: {state.__name__}.{field.name} is {type_text(field.type)}, and a state "
                "holds numbers, texts, booleans, dates, times and decimals, lists of these and "
                "maps: write a field for each of its values"
            )
        member = members[field.name]
        if not member.default_none and not member.default_other:
            raise PlanError(
                f"state: {state.__name__}.{field.name} has no default, and the first row of a key "
                f"finds one: write {field.name}: ... = 0, or another first value"
            )
    try:
        first = state()
    except Exception as error:  # any error of a user's class
        raise PlanError(
            f"state: {state.__name__}() raised {type(error).__name__}: {error}"
        ) from error
    return schema.fields, tuple(_default(state, first, field) for field in schema.fields)


def _default(state: type, first: Any, field: Field) -> Any:
    """Return the stored value of a field's default. Raises PlanError."""
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
    if isinstance(bare_type(field.type), List):
        (numbers,) = numbers_of([value], field.type)
        return list(numbers)
    values = found.values
    return values[0] if isinstance(values, list) else values[0].item()
