"""A Delta Lake table: our commits in its log, and the statements that apply changes."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.connectors.contract import Commit
from ripple.connectors.files.text.cut_record import Owner, from_json, to_json
from ripple.connectors.library_errors import said
from ripple.connectors.record_shape import flat_schema_of
from ripple.core.errors import OutputError, SchemaError
from ripple.core.extras import needed
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE, OP_SET
from ripple.model.schema.logical.showing import shown_schema
from ripple.model.schema.types import DateTime, bare_type

with needed("delta", "a table of Delta Lake"):
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.connector import Writing

# Changes, or events as they are read.
Rows: TypeAlias = pa.Table | pa.RecordBatchReader
# Of the table's transactions, and of what a commit says besides.
APPLICATION = "ripple"
_MICROS = pa.timestamp("us", "UTC")


class Record(NamedTuple):
    """The content of one of our commits. number: of them, from 1 on. epoch: of the part's owner."""

    number: int
    owner: Owner
    epoch: int
    commit: Commit | None

    def to_json(self) -> str:
        """Return the text that is committed."""
        fields = {
            "number": self.number,
            "pipeline": self.owner.pipeline,
            "output": self.owner.output,
            "epoch": self.epoch,
            "reached": to_json(self.commit),
        }
        return json.dumps(fields, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read it again. Raises ValueError, KeyError and TypeError."""
        fields = json.loads(text)
        owner = Owner(fields["pipeline"], fields["output"])
        return cls(fields["number"], owner, fields["epoch"], from_json(fields["reached"]))


class Table:
    """The table of one output, a row per key or event. Errors are raised as OutputError."""

    def __init__(self, path: str, writing: Writing) -> None:
        self.name = f"delta:{path}"
        self.owner = Owner(writing.plan.name, writing.output.name)
        fields = writing.output.fields
        self.is_stream = writing.output.is_stream
        self.key = [f.name for f in writing.plan.key_of(writing.output)]
        self._times = [one.name for one in fields if bare_type(one.type) == DateTime()]
        for name in self._times:
            if name in self.key:
                raise OutputError(
                    f"cannot write {self.name}: the key {name!r} is a time of nanoseconds, and "
                    f"Delta Lake's have microseconds: derive rp.col({name!r}).cast(int) before the "
                    "fold"
                )
        try:
            self.schema = shown_schema(flat_schema_of(fields), fields)
        except SchemaError as error:
            raise OutputError(
                f"cannot write {self.name}: {error}. Lists and records go to Parquet, JSON lines, "
                "logs and PostgreSQL"
            ) from error
        for name in self._times:
            at = self.schema.get_field_index(name)
            self.schema = self.schema.set(at, self.schema.field(at).with_type(_MICROS))
        self._path = path
        self._table: DeltaTable | None = None
        self._id = ""

    def written(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their times in microseconds, the nanoseconds cut off."""
        for name in self._times:
            at = rows.schema.get_field_index(name)
            numbers = rows.column(at).cast(pa.int64())
            micros = np.asarray(numbers.fill_null(0)) // 1000
            null = np.asarray(numbers.is_null()) if numbers.null_count else None
            column = pa.array(micros, mask=null).cast(_MICROS)
            rows = rows.set_column(at, rows.schema.field(at).with_type(_MICROS), column)
        return rows

    def record(self) -> Record | None:
        """Return the content of our newest commit, None without one; read it anew."""
        with self._one_line_errors():
            if not DeltaTable.is_deltatable(self._path):
                return None
            self._table = table = DeltaTable(self._path)
            self._note(table)
            number = table.transaction_version(APPLICATION)
            if number is None:
                raise OutputError(
                    f"cannot write {self.name}: there is such a table, which no run has made"
                )
            self._check(pa.schema(table.schema()))
            for entry in (*table.history(1), *table.history()):
                if APPLICATION in entry:
                    return self._read(entry[APPLICATION], number)
        raise OutputError(
            f"cannot write {self.name}: its log no longer has the commit with the "
            "cut. Name another folder to start over"
        )

    def make(self, record: Record) -> None:
        """Create the table, without rows; nothing if another process has done so meanwhile."""
        with self._one_line_errors():
            self._table = DeltaTable.create(
                self._path, self.schema, mode="error", commit_properties=_properties(record)
            )
            self._note(self._table)

    def _note(self, table: DeltaTable) -> None:
        """Note which table it is. Raises OutputError where it was another one."""
        id_ = str(table.metadata().id)
        if self._id not in ("", id_):
            raise OutputError(
                f"cannot write {self.name}: it is another table than the one that was written "
                "until now: bring that one back, or remove this one to start over"
            )
        self._id = id_

    def commit(self, changes: Rows, record: Record) -> bool:
        """Bring changes into the table, each key once; False if another commit came between."""
        assert self._table is not None
        properties = _properties(record)
        with self._one_line_errors():
            try:
                if isinstance(changes, pa.RecordBatchReader):
                    write_deltalake(
                        self._table, changes, mode="append", commit_properties=properties
                    )
                elif changes.num_rows:
                    self._merge(self._table, changes, properties)
                else:
                    schema = self._table.schema()
                    self._table.create_write_transaction(
                        [], "append", schema, commit_properties=properties
                    )
            except CommitFailedError:
                return False
        return True

    def keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of all rows, with ``op``."""
        assert self._table is not None
        with self._one_line_errors():
            columns = list(key) or self.schema.names[:1]
            for batch in self._table.to_pyarrow_dataset().to_batches(columns=columns):
                op = pa.array([OP_NAMES[OP_SET]] * batch.num_rows, pa.string())
                yield batch.append_column(OP, op)

    def replace(self, rows: Rows, record: Record) -> None:
        """Let the table be these rows, in one commit."""
        with self._one_line_errors():
            write_deltalake(
                self._path, rows, mode="overwrite", commit_properties=_properties(record)
            )

    def _merge(self, table: DeltaTable, changes: pa.Table, properties: CommitProperties) -> None:
        is_same = " AND ".join(f"t.{_quoted(name)} = s.{_quoted(name)}" for name in self.key)
        row = {_quoted(name): f"s.{_quoted(name)}" for name in self.schema.names}
        is_gone = f"s.{OP} = {OP_REMOVE}"
        merger = table.merge(
            changes,
            is_same or "true",  # without a key there is one row
            source_alias="s",
            target_alias="t",
            commit_properties=properties,
        )
        merger = merger.when_matched_delete(is_gone).when_matched_update(row)
        merger.when_not_matched_insert(row, f"NOT {is_gone}").execute()

    def _check(self, found: pa.Schema) -> None:
        for field in self.schema:
            at = found.get_field_index(field.name)
            if at < 0 or found.field(at).type != field.type:
                there = (
                    f"which is {found.field(at).type} there" if at >= 0 else "which is not there"
                )
                raise OutputError(
                    f"cannot write {self.name}: the output has a column {field.name!r} "
                    f"({field.type}), {there}. Name another folder, or remove this one"
                )

    def _read(self, text: str, number: int) -> Record:
        try:
            record = Record.from_json(text)
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{self.name}: what its log says of us cannot be read") from error
        if record.number != number:
            raise OutputError(
                f"{self.name}: its log says that commit {number} was our last one, and has "
                f"{record.number}"
            )
        if record.owner != self.owner:
            raise OutputError(
                f"{self.name} belongs to {record.owner}, not to {self.owner}: choose another URI"
            )
        return record

    @contextmanager
    def _one_line_errors(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as error:
            raise OutputError(f"cannot write {self.name}: {said(error)}") from error


def check(path: str) -> str:
    """Describe the table; raises OutputError."""
    try:
        if not DeltaTable.is_deltatable(path):
            return "not there yet"
        table = DeltaTable(path)
        number = table.transaction_version(APPLICATION)
    except (DeltaError, OSError) as error:
        raise OutputError(f"delta:{path}: {said(error)}") from error
    whose = "which no run has made" if number is None else f"of which {number} are Ripple's"
    return f"a table of {table.version() + 1} commits, {whose}"


def _properties(record: Record) -> CommitProperties:
    # Not repeated by the library: whether a commit that failed was ours is looked up.
    return CommitProperties(
        custom_metadata={APPLICATION: record.to_json()},
        app_transactions=[Transaction(APPLICATION, record.number)],
        max_commit_retries=0,
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plain(rows: Rows, schema: pa.Schema) -> Rows:
    """Return changes as rows of a table: the present ones, without their operations."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if OP in rows.column_names:
        rows = rows.filter(pa.compute.not_equal(rows[OP], OP_REMOVE)).drop_columns([OP])
    return rows.cast(schema)
