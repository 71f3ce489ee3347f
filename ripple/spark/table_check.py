"""Comparison of a table of another program with the rows of an output, over all of the input."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.files.folder.listing import is_pattern
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.locate import open_source
from ripple.connectors.registry import find
from ripple.core.errors import InputError, SchemaError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, Option, Schema
from ripple.spark.finding import OUR_ENGINE, EventTable, Finding, differences, identity_of
from ripple.spark.fresh import Fresh
from ripple.task.one_shot import at_once, entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.oracle import Table
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True)
class AgainstTable:
    """Comparison of an output with a file or a table, with its fields as columns.

    fields: to compare beside the key, () for all. header: whether CSV names its columns. The
    input is read to its end, which closes all windows.
    """

    parcel: Parcel
    shares: tuple[Share, ...]
    output: str
    place: str
    fields: tuple[str, ...] = ()
    header: bool = False
    engine: str = OUR_ENGINE
    reporter: Reporter | None = None

    def check(self, plan: Plan) -> None:
        """Raise InputError or SchemaError for a table of other columns or types."""
        found = find(self.place, "source")
        is_file = found.connector.path_of is not None and not is_pattern(found.path)
        if is_file and not is_remote(found.path) and not os.path.exists(found.path):
            raise InputError(
                f"cannot compare with {found.path}: there is no such file; name a file or a table, "
                "or log:DIR/TOPIC and checkpoints:DIR of a live run"
            )
        at_once(self._inputs(self._schema(plan)).close())

    def run(self) -> Iterator[Packet]:
        """Yield the findings."""
        plan = self.parcel.plan()
        output = plan.output(self.output)
        finding = Finding("tables", f"{output.name} in {self.place}")
        found, problems = self._read(plan, output)
        fresh = Fresh(
            plan, self.shares, {one.name: 0 for one in self.shares}, self.engine, staged=False
        )
        fresh.go_to_end(self.reporter)
        schema = self._schema(plan)
        names = [one.name for one in schema.fields]
        expected: Table = fresh.table(output)
        if output.is_stream:
            events = EventTable()
            events.add({name: row[name] for name in names} for row in expected.values())
            expected = events.rows
        else:
            expected = {key: {name: row[name] for name in names} for key, row in expected.items()}
        finding.rows, finding.cases = fresh.rows, len({*expected, *found})
        refused = fresh.engine.counters.as_dict()["dead_lettered"]
        if refused:
            finding.note = f"{refused:,} records of the input are rejected, and in no row"
        finding.refuse(problems, self.output)
        finding.add(
            *differences(plan, output, "the table", (expected, found), (self.shares, fresh.cut))
        )
        yield finding.packet()

    def _schema(self, plan: Plan) -> Schema:
        """Return the columns to read. Raises InputError for an unknown field."""
        output = plan.output(self.output)
        key, known = identity_of(plan, output), [one.name for one in output.fields]
        for name in self.fields:
            if name not in known:
                raise InputError(
                    f"{output.name} has no field {name!r} to compare: it has {', '.join(known)}"
                )
        chosen = [
            one
            for one in output.fields
            if not self.fields or one.name in key or one.name in self.fields
        ]
        return Schema(
            output.name,
            tuple(
                one
                if one.name in key or isinstance(one.type, Option)
                else Field(one.name, one.type, optional=True)
                for one in chosen
            ),
        )

    def _inputs(self, schema: Schema) -> Inputs:
        given: Any = self.place
        found = find(self.place, "source")
        if found.connector.scheme == "parquet":
            given = _in_integers(_parquet(found.path), schema)
        try:
            if not isinstance(given, str):
                self._check_columns(given.column_names, schema)
            return open_source(
                given, schema, name=self.place, batch_rows=_ROWS_AT_ONCE, header=self.header
            )
        except SchemaError as error:
            text = str(error).replace("the table", self.place)
            raise SchemaError(
                f"{text}; the output {self.output!r} is compared with it by the names of its "
                f"fields: {', '.join(one.name for one in schema.fields)} (--fields chooses)"
            ) from error

    def _check_columns(self, names: Sequence[str], schema: Schema) -> None:
        missing = [repr(one.name) for one in schema.fields if one.name not in names]
        if missing:
            raise SchemaError(
                f"{self.place} has no column {', '.join(missing)}: it has {', '.join(names)}"
            )

    def _read(self, plan: Plan, output: Output) -> tuple[Table, list[str]]:
        """Return the rows of the table, and the problems of others."""
        schema, key = self._schema(plan), identity_of(plan, output)
        table: Table = {}
        events, problems = EventTable(), list[str]()
        inputs = self._inputs(schema)
        try:
            for entry in entries(inputs, _ROWS_AT_ONCE):
                if not isinstance(entry, Batch):
                    continue
                problems += [
                    f"a row is no row of the output: {bad.cause}" for bad in entry.rejected
                ]
                rows = entry.records.to_pylist()
                if output.is_stream:
                    events.add(rows)
                    continue
                for row in rows:
                    at = tuple(row[name] for name in key)
                    if at in table:
                        problems.append(f"two rows have the key {at!r}")
                    table[at] = row
        finally:
            at_once(inputs.close())
        return (events.rows if output.is_stream else table), problems


def _parquet(path: str) -> pa.Table:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import

    from ripple.connectors.files.parquet.files import readable  # noqa: PLC0415 - likewise

    with readable(path):
        try:
            return pq.read_table(path)
        except FileNotFoundError as error:
            raise InputError(f"cannot read {path}: there is no such file") from error


def _in_integers(table: pa.Table, schema: Schema) -> pa.Table:
    """Return a table with times in nanoseconds where the output has those, as in windows."""
    wanted = {one.name: one.type for one in arrow_fields(schema.fields)}
    for at, field in enumerate(table.schema):
        if kinds.is_timestamp(field.type) and wanted.get(field.name) == pa.int64():
            column = table.column(at).cast(pa.timestamp("ns", field.type.tz)).cast(pa.int64())
            table = table.set_column(at, field.name, column)
    return table
