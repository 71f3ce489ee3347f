"""The source of events of a step ``.source(...)``, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.pipeline.checks import (
    ahead_in,
    check_text,
    checks_in,
    dividing_fields,
    flat_record_of,
    idle_in,
    time_field_in,
)
from ripple.model.pipeline.nodes import SourceSpec
from ripple.model.window.duration import duration_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.model.expression.expr import Operand
    from ripple.model.pipeline.draft import Draft
    from ripple.model.schema.types import Schema


def event_source(
    name: str,
    record: type | Schema,
    draft: Draft,
    *,
    topic: str | None,
    time: Operand,
    out_of_order: str | int,
    reject_future: str | int | None,
    key: Operand | Sequence[Operand],
    idle: str | int | None,
) -> SourceSpec:
    """Return the source that a draft declares next; raises PlanError for arguments at fault."""
    cls, schema, optional = flat_record_of(record, "record")
    checks = checks_in(cls, schema)
    check_text(topic, "topic")
    time_field = time_field_in(time, cls, schema)
    return SourceSpec(
        name,
        schema,
        topic,
        time_field,
        duration_ns(out_of_order, "out_of_order"),
        cls,
        name,
        checks,
        ahead_in(reject_future, time_field),
        idle_ns=idle_in(idle, time_field),
        key=tuple(field.name for field in dividing_fields(key, schema.fields)),
        ordinal=next(draft.ordinals),
        optional_records=optional,
    )
