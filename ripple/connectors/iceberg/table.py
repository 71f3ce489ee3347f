"""A table of Iceberg as an output: our commits in its properties, and the rows that they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.iceberg.catalog import RECORD, catalog_of, one_line_errors, table_in
from ripple.connectors.tables.pending import newest, plain
from ripple.connectors.tables.table import OutputTable, as_set
from ripple.core.errors import OutputError
from ripple.core.extras import needed
from ripple.core.row_ops import OP, OP_SET

with needed("iceberg", "a table of Iceberg"):
    from pyiceberg import expressions as of
    from pyiceberg.exceptions import (
        CommitFailedException,
        NamespaceAlreadyExistsError,
        TableAlreadyExistsError,
    )

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.table import Table

    from ripple.connectors.connector import Writing
    from ripple.connectors.iceberg.uri import TableUri
    from ripple.connectors.tables.record import Record
    from ripple.connectors.tables.table import Rows

VALUES_MAX = 200
"""Of the first field of a key, by which rows are looked up one by one; more of them by range."""
_RETRIES = "commit.retry.num-retries"


class IcebergTable(OutputTable):
    """The table of one output; see OutputTable.

    A commit is one transaction: the snapshots of its rows, with the record in their summaries, and
    the same record as a property of the table, which outlives the snapshots. The transaction counts
    only if the table's newest snapshot is still the one that it began with.
    """

    def __init__(self, place: TableUri, writing: Writing) -> None:
        """Look at nothing yet."""
        super().__init__(str(place), "Iceberg", writing)
        self._place = place
        self._catalog = catalog_of(place, OutputError)
        self._table: Table | None = None

    def record(self) -> Record | None:
        """Return the content of our newest commit, None without a table; read it anew."""
        with self._one_line_errors():
            self._table = table = table_in(self._catalog, self._place)
        if table is None:
            return None
        self.check_id(str(table.metadata.table_uuid))
        if RECORD not in table.properties:
            raise self.foreign()
        found = small(table.schema().as_arrow())
        self.check_columns(found)
        for name in found.names:
            if name not in self.schema.names:
                raise OutputError(
                    f"cannot write {self.name}: the table has a column {name!r}, which the output "
                    "has not, and the values there would be lost. Drop the column, name another "
                    "table, or remove this one"
                )
        return self.record_in(table.properties[RECORD])

    def make(self, record: Record) -> None:
        """Create the table, without rows; nothing if another process has done so meanwhile."""
        with self._one_line_errors():
            self._make_namespace()
            about = {RECORD: record.to_json()}
            try:
                self._catalog.create_table(self._place.identifier, self.schema, properties=about)
            except TableAlreadyExistsError:
                return
        self.record()

    def commit(self, changes: Rows, record: Record) -> bool:
        """Bring changes into the table, each key once; False if another commit came between."""
        with self._one_line_errors():
            table, about = self._held(), {RECORD: record.to_json()}
            # A repetition by the library would pass over the commit of another owner.
            table.metadata.properties[_RETRIES] = "0"
            try:
                with table.transaction() as transaction:
                    found: pa.Table | None = None
                    rows: Rows = changes
                    if not isinstance(changes, pa.RecordBatchReader):
                        places = self._places(changes)
                        found = small(table.scan(places).to_arrow(), self.schema)
                        rows = self._merged(found, changes)
                    if found is not None and found.num_rows:
                        transaction.overwrite(rows, places, snapshot_properties=about)
                    else:
                        transaction.append(rows, snapshot_properties=about)
                    transaction.set_properties(about)
            except CommitFailedException:
                return False
        return True

    def keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of all rows, with ``op``."""
        columns = tuple(key) or tuple(self.schema.names[:1])
        with self._one_line_errors():
            for batch in self._held().scan(selected_fields=columns).to_arrow_batch_reader():
                yield as_set(batch)

    def replace(self, rows: Rows, record: Record) -> None:
        """Let the table be these rows, in one commit."""
        about = {RECORD: record.to_json()}
        with self._one_line_errors():
            if self._table is None:
                self._make_namespace()
                with self._catalog.create_table_transaction(
                    self._place.identifier, self.schema, properties=about
                ) as made:
                    made.append(rows, snapshot_properties=about)
                return
            with self._table.transaction() as transaction:
                if self._table.current_snapshot() is None:
                    transaction.append(rows, snapshot_properties=about)
                else:
                    transaction.overwrite(rows, snapshot_properties=about)
                transaction.set_properties(about)

    def _held(self) -> Table:
        assert self._table is not None
        return self._table

    def _make_namespace(self) -> None:
        try:
            self._catalog.create_namespace(self._place.namespace)
        except NamespaceAlreadyExistsError:
            return

    def _places(self, changes: pa.Table) -> of.BooleanExpression:
        """Return a condition that the rows with the keys of changes fulfil, and few others."""
        if not changes.num_rows:
            return of.AlwaysFalse()
        if not self.key:
            return of.AlwaysTrue()
        name, values = self.key[0], changes[self.key[0]].unique()
        if len(values) <= VALUES_MAX:
            return of.In(name, values.to_pylist())
        ends = pa.compute.min_max(values).as_py()
        least, greatest = ends["min"], ends["max"]
        return of.And(of.GreaterThanOrEqual(name, least), of.LessThanOrEqual(name, greatest))

    def _merged(self, found: pa.Table, changes: pa.Table) -> pa.Table:
        """Return found rows with changes: the present ones."""
        if not changes.num_rows:
            return self.schema.empty_table()
        present = found.append_column(OP, pa.array([OP_SET] * found.num_rows, pa.int8()))
        both = pa.concat_tables([present.cast(changes.schema), changes])
        rows: pa.Table = plain(newest(both, self.key), self.schema)
        return rows

    def _one_line_errors(self) -> Any:
        return one_line_errors(f"cannot write {self.name}", OutputError)


def small(found: Any, schema: pa.Schema | None = None) -> Any:
    """Return a schema, or rows in ``schema``, with texts and bytes of the common types."""
    if schema is not None:
        return found.select(schema.names).cast(schema)  # others may have moved columns
    kinds = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return pa.schema(one.with_type(kinds.get(one.type, one.type)) for one in found)
