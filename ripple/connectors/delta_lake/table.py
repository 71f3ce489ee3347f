"""A Delta Lake table: our commits in its log, and the statements that apply changes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.library_errors import said
from ripple.connectors.tables.table import OutputTable, as_set
from ripple.core.errors import OutputError
from ripple.core.extras import needed
from ripple.core.row_ops import OP, OP_REMOVE

with needed("delta", "a table of Delta Lake"):
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.connector import Writing
    from ripple.connectors.tables.record import Record
    from ripple.connectors.tables.table import Rows

# Of the table's transactions, and of what a commit says besides.
APPLICATION = "ripple"


class Table(OutputTable):
    """The table of one output, a row per key or event. Errors are raised as OutputError."""

    kind = "folder"

    def __init__(self, path: str, writing: Writing) -> None:
        super().__init__(f"delta:{path}", "Delta Lake", writing)
        self._path = path
        self._table: DeltaTable | None = None

    def record(self) -> Record | None:
        """Return the content of our newest commit, None without one; read it anew."""
        with self._one_line_errors():
            if not DeltaTable.is_deltatable(self._path):
                return None
            self._table = table = DeltaTable(self._path)
            self.check_id(str(table.metadata().id))
            number = table.transaction_version(APPLICATION)
            if number is None:
                raise self.foreign()
            self.check_columns(pa.schema(table.schema()))
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
            self.check_id(str(self._table.metadata().id))

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
                yield as_set(batch)

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

    def _read(self, text: str, number: int) -> Record:
        record = self.record_in(text)
        if record.number != number:
            raise OutputError(
                f"{self.name}: its log says that commit {number} was our last one, and has "
                f"{record.number}"
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
    origin = "which no run has made" if number is None else f"of which {number} are Ripple's"
    return f"a table of {table.version() + 1} commits, {origin}"


def _properties(record: Record) -> CommitProperties:
    # Not repeated by the library: whether a commit that failed was ours is looked up.
    return CommitProperties(
        custom_metadata={APPLICATION: record.to_json()},
        app_transactions=[Transaction(APPLICATION, record.number)],
        max_commit_retries=0,
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
