"""Tables from topics: a source whose records are changes, and the fold of the newest of each key.

A table is built of the parts of every plan: a source without event time, a fold by its key with the
row of the greatest offset, and a filter on the results, which takes deleted rows away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.model.aggregate.whole_rows import NewestRow
from ripple.model.expression.expr import Operand, col
from ripple.model.pipeline.checks import (
    ahead_in,
    check_distinct,
    check_result_field,
    checks_in,
    field_name,
    flat_record_of,
    idle_in,
    time_field_in,
    type_text,
)
from ripple.model.pipeline.folding import ending_after
from ripple.model.pipeline.nodes import (
    DELETED,
    DELETED_FIELD,
    Filter,
    Fold,
    FoldAggregate,
    SourceSpec,
    TableSpec,
    Versions,
    types_of,
)
from ripple.model.schema.checks import TimedChecks
from ripple.model.schema.types import (
    KEY_TYPES,
    KEY_WORDS,
    Bool,
    Field,
    FieldType,
    Float,
    Option,
    Schema,
    bare_type,
)
from ripple.model.window.duration import duration_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.model.expression.bound import Bound
    from ripple.model.pipeline.draft import Draft

VERSION_DELETED = "deleted"  # the field of a version that says that there is no row
FORMATS = ("debezium",)
TRUNCATIONS = ("stop", "letter")
_TYPES = (*KEY_TYPES, Float)


def table_source(
    name: str,
    record: type | Schema,
    ordinal: int,
    *,
    key: Operand | Sequence[Operand],
    topic: str | None,
    deleted: Operand,
    format: str | None,  # noqa: A002 - as users write it
    truncate: str,
    time: Operand,
    out_of_order: str | int,
    reject_future: str | int | None,
    idle: str | int | None,
) -> SourceSpec:
    """Return the source of a table's changes. Raises PlanError."""
    cls, schema, optional = flat_record_of(record, "record")
    types = types_of(schema.fields)
    for field in schema.fields:
        check_result_field(field.name)
        if not isinstance(bare_type(types[field.name]), _TYPES):
            raise PlanError(
                f"{field.name!r} is {type_text(types[field.name])}, and a table holds numbers, "
                f"texts and booleans: leave it out of the record"
            )
    names = _key_names(key, types)
    mark = DELETED if deleted is None else _mark(deleted, types, names)
    if format is not None and not _is_one_of(format, FORMATS):
        raise PlanError(f"format is {shown(format)}: there is 'debezium', and None for records")
    if format is not None and deleted is not None:
        raise PlanError("an envelope of Debezium tells a deletion by its op: leave deleted= out")
    if not _is_one_of(truncate, TRUNCATIONS):
        raise PlanError(f"truncate is {shown(truncate)}: it must be 'stop' or 'letter'")
    if truncate != "stop" and format is None:
        raise PlanError("only envelopes of Debezium tell of truncations: leave truncate= out")
    time_field = None if time is None else time_field_in(time, cls, schema)
    if time_field is None and duration_ns(out_of_order, "out_of_order"):
        raise PlanError("out_of_order needs an event time: name it with time=")
    checks = checks_in(cls, schema)
    for formed, given in checks.items():
        if isinstance(given, TimedChecks):
            raise PlanError(
                f"the field {formed!r} has format={given.format!r}, which records of tables cannot "
                "have yet, since deletions lack fields: declare it a str, and take its time in a "
                "step after .table(...), or have its source write nanoseconds"
            )
    # A deletion needs its key, and the field that says so.
    relaxed = tuple(
        one if one.name in (*names, mark) else replace(one, optional=True) for one in schema.fields
    )
    return SourceSpec(
        name,
        replace(schema, fields=relaxed),
        topic,
        time_field,
        duration_ns(out_of_order, "out_of_order"),
        cls,
        name,
        checks,
        ahead_in(reject_future, time_field),
        (),
        ordinal,
        idle_in(idle, time_field),
        table=TableSpec(names, schema.fields, mark, format or "", truncate),
        optional_records=optional,
    )


def table_fold(source: SourceSpec, ttl: str | int | None) -> Fold:
    """Return the fold of a table's rows. Raises PlanError.

    ttl: how long after their event time rows end. A record that is later is over when it comes, and
    a record that is further ahead ends all others: so this is the lateness, and the bound of
    future.
    """
    if ttl is not None and source.time_field is None:
        raise PlanError("ttl= ends rows by event time: name the field with time=")
    expiry = None if ttl is None else ending_after(ttl, ttl, ttl)
    table = source.table
    assert table is not None
    mark = DELETED_FIELD
    members = {field.name: field for field in source.fields_needed}
    if table.deleted != DELETED:
        mark = members.pop(table.deleted)
    key = tuple(members.pop(name) for name in table.key)
    fields_in = (*key, *members.values(), mark)
    types = types_of(fields_in)
    taken = (*members, mark.name)
    inputs = tuple(col(field).bind(types) for field in taken)
    newest = NewestRow(taken, taken, last=True)
    bound = newest.bind(tuple(item.type for item in inputs))
    results = (*key, *(Field(field, of) for field, of in bound.results))
    row = results[:-1]
    named, at = f"{source.name}.newest", _rows_of(source)
    path = f"{source.name}/{source.name}.key/{named}"
    is_there = (~col(mark.name).fill_null(False)).bind(types_of(results))
    rows = Filter(at, is_there, results, row, f"{path}/{at}", named)
    member = FoldAggregate("newest", newest, inputs, bound)
    return Fold(
        named,
        source.name,
        f"{source.name}.key",
        key,
        None,
        (member,),
        (rows,),
        row,
        fields_in,
        path,
        source.name,
        expiry=expiry,
    )


def versions_of(name: str, draft: Draft) -> Versions:
    """Return the node of a ``.versions(...)`` of the draft's table. Raises PlanError."""
    source = draft.read[0]
    table = source.table
    if table is None or draft.at != _rows_of(source):
        raise PlanError(
            "versions are those of a table from a topic: put it right after .table(...)"
        )
    if source.time_field is None:
        raise PlanError(
            f"the versions of {source.name!r} are ordered by event time, and it has none: name the "
            "field with .table(..., time=...)"
        )
    taken = source.fields_taken
    needed = (*table.key, source.time_field, table.deleted)
    fields = tuple(
        one if one.name in needed else replace(one, optional=True) for one in table.fields
    )
    exprs: tuple[tuple[str, Bound], ...] = ()
    deleted = table.deleted
    if deleted == DELETED:
        deleted = VERSION_DELETED
        if deleted in (field.name for field in fields):
            raise PlanError(
                f"a version has a field {deleted!r}, true in a deletion, and so has the record: "
                f"if it means the same, say .table(..., deleted={deleted!r}), else rename it"
            )
        exprs = ((deleted, col(DELETED).fill_null(False).bind(types_of(taken))),)
        fields = (*fields, Field(deleted, Bool()))
    path = f"{source.name}/{name}"
    return Versions(name, exprs, taken, fields, path, source.name, deleted)


def _rows_of(source: SourceSpec) -> str:
    """Return the name of the node with a table's rows."""
    return f"{source.name}.rows"


def _key_names(key: Operand | Sequence[Operand], types: Mapping[str, FieldType]) -> tuple[str, ...]:
    """Return the names of the fields that identify a row."""
    chosen = key if isinstance(key, (tuple, list)) else (key,)
    if key is None or not chosen:
        raise PlanError(
            f"a row is found by its key: name a field, or several, with key=, not {shown(key)}"
        )
    names = tuple(field_name(one, types, "the key") for one in chosen)
    for name in names:
        if isinstance(types[name], Option):
            raise PlanError(
                f"the key {name!r} may be null, and null identifies no row: let the record "
                "declare it without None, and one that lacks it becomes a dead letter"
            )
        if not isinstance(types[name], KEY_TYPES):
            raise PlanError(f"the key {name!r} is {type_text(types[name])}: choose {KEY_WORDS}")
    check_distinct(names, "key")
    return names


def _mark(deleted: Operand, types: Mapping[str, FieldType], key: Sequence[str]) -> str:
    """Return the name of the field that is true in a deletion."""
    name = field_name(deleted, types, "deleted")
    if not isinstance(bare_type(types[name]), Bool):
        raise PlanError(
            f"deleted={name!r} is {type_text(types[name])}: name a bool, true in a deletion"
        )
    if name in key:
        raise PlanError(f"deleted={name!r} is of the key, too: name another field")
    return name


def _is_one_of(given: object, known: Sequence[str]) -> bool:
    return isinstance(given, str) and given in known
