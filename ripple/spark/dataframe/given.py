"""The rows of a source in a DataFrame: their columns, order and identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.types as kinds

from ripple.connectors.locate import open_source
from ripple.core.arguments import shown
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema.checks import untimed
from ripple.model.schema.types import Date, Logical, bare_type
from ripple.task.one_shot import at_once

if TYPE_CHECKING:
    from typing import TypeAlias

    import pyarrow as pa

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.checks import Checks

    Names: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]]"


@dataclass(frozen=True, slots=True)
class Given:
    """The columns of a DataFrame for a source, and the order of its rows.

    columns: its column for each field that it has. typed: fields that it has as times, whatever
    their format says. order_by, identity: names of its columns, and of fields.

    Rows are in order of event time, of ``order_by``, and of the fields as declared, or of
    ``identity``. So rows without an order are equal in all fields, and a replay of the same rows
    can be repeated, however Spark reads them.
    """

    source: str
    columns: tuple[tuple[str, str], ...]
    typed: frozenset[str] = frozenset()
    order_by: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()

    def order_text(self, source: SourceSpec) -> str:
        """Return the order of the rows as a text for reports."""
        first = [] if source.time_field is None else [source.time_field]
        rest = ", ".join(self.identity) or "all fields"
        return ", ".join([*first, *self.order_by, rest])

    def tied_fields(self, source: SourceSpec, key: Sequence[str]) -> tuple[str, ...]:
        """Return the fields that order rows of one time. key: the partition key of the rows."""
        names = dict(self.columns)
        # A value that has several texts does not order the rows of its key.
        plain = {one.name for one in source.fields if not isinstance(bare_type(one.type), Logical)}
        plain |= {one.name for one in source.fields if isinstance(bare_type(one.type), Date)}
        first = [name for name in key if name in names and name in plain]
        rest = self.identity or (*first, *(name for name in names if name not in first))
        return tuple(name for name in rest if name != source.time_field)

    def checks(self, source: SourceSpec) -> Mapping[str, Checks]:
        """Return the checks of the source's fields, with the formats that the columns have."""
        return {
            name: untimed(checks) if name in self.typed else checks
            for name, checks in source.checks.items()
        }


def given_of(
    source: SourceSpec,
    columns: Mapping[str, str],
    schema: pa.Schema,
    names: Sequence[str],
    *,
    order_by: tuple[str, ...],
    identity: tuple[str, ...],
) -> Given:
    """Check a DataFrame's columns.

    columns: by field. schema: of the fields that it has. names: of all of its columns. Raises
    SchemaError for missing columns and wrong types, InputError for a source that needs offsets or
    an order, and for an unknown field of an identity.
    """
    _check_kind(source, order_by)
    missing = [
        one.name for one in source.schema.fields if one.name not in columns and not one.optional
    ]
    if missing:
        raise SchemaError(
            f"the DataFrame of {source.name} has no column {', '.join(map(repr, missing))}: it has "
            f"{', '.join(names)}; rename one with df.withColumnRenamed, or select its value as it"
        )
    typed = frozenset(one.name for one in schema if is_time(one.type))
    given = Given(source.name, tuple(columns.items()), typed, order_by, identity)
    for name in identity:
        if name not in columns:
            raise InputError(
                f"records of {source.name} cannot be identified by {name!r}: there is no such "
                f"field; it has {', '.join(columns)}"
            )
    field = source.time_field
    if field is not None and kinds.is_string(schema.field(field).type):
        raise SchemaError(
            f"the event time {field!r} of {source.name} is text in the DataFrame, which has no "
            f"order by time: make it a time first, as with df.withColumn({field!r}, "
            f"to_timestamp({field!r}))"
        )
    if field is not None and (
        kinds.is_floating(schema.field(field).type) or kinds.is_decimal(schema.field(field).type)
    ):
        raise SchemaError(
            f"the event time {field!r} of {source.name} is {schema.field(field).type} in the "
            "DataFrame: make it a time, as with timestamp_seconds or timestamp_millis of Spark, or "
            "a whole number of nanoseconds"
        )
    for one in schema:
        if kinds.is_null(one.type):
            raise SchemaError(
                f"the column {one.name!r} of the DataFrame of {source.name} has no type, only "
                f"nulls: give it one, as with df.withColumn({one.name!r}, "
                f"col({one.name!r}).cast(...)), or drop it where the field is optional"
            )
    _check_types(source, given, schema)
    return given


def _check_kind(source: SourceSpec, order_by: tuple[str, ...]) -> None:
    if source.table is not None:
        raise InputError(
            f"{source.name} is a table from a topic, where offsets tell the newest record of a "
            "key, and rows of a DataFrame have none: name its topic, and those of the other "
            "sources"
        )
    if source.time_field is None and not order_by:
        raise InputError(
            f"the records of {source.name} have no event time, and the rows of a DataFrame no "
            "order: name the columns that order them, order_by="
        )


def _check_types(source: SourceSpec, given: Given, schema: pa.Schema) -> None:
    try:
        found = open_source(
            schema.empty_table(), source.schema, name=source.name, checks=given.checks(source)
        )
        at_once(found.close())
    except SchemaError as error:
        text = str(error).replace("the table", f"the DataFrame of {source.name}")
        decimals = [one.name for one in schema if kinds.is_decimal(one.type)]
        for name in (one for one in decimals if repr(one) in text):
            text += f"; round it yourself, as with df.withColumn({name!r}, col({name!r}).cast(...))"
        raise SchemaError(text) from error


def names_of(plan: Plan, given: Names, what: str) -> dict[str, tuple[str, ...]]:
    """Return names by source. given: the names of one source, or a mapping for several.

    Raises InputError.
    """
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in {one.name for one in plan.sources}]
        if unknown:
            raise InputError(
                f"{what} names the source {shown(unknown[0])}: there are {plan.source_names}"
            )
        found = given
    elif len(plan.sources) > 1 and given:
        pairs = ", ".join(f"{one.name!r}: ..." for one in plan.sources)
        raise InputError(f"{what} is by source, as in {{{pairs}}}: the pipeline has several")
    else:
        found = {plan.sources[0].name: given}
    return {name: _listed(one, what) for name, one in found.items()}


def _listed(given: str | Sequence[str], what: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise InputError(
            f"{what} has the names of columns, as in {what}=['seq'], not {shown(given)}"
        )
    return tuple(given)


def is_time(kind: pa.DataType) -> bool:
    """Return whether a column has times, which may be days."""
    return bool(kinds.is_timestamp(kind) or kinds.is_date(kind))
