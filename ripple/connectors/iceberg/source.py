"""The rows of a snapshot of Iceberg, in the order of its files' names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.coercion import check_columns
from ripple.connectors.cutting import recut
from ripple.connectors.iceberg.catalog import catalog_of, one_line_errors, table_in
from ripple.connectors.iceberg.uri import TableUri
from ripple.connectors.open_reading import OpenReading
from ripple.connectors.prefetch import prefetched
from ripple.connectors.validation import screened
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.model.schema.nested import with_leaf_types

with needed("iceberg", "a table of Iceberg"):
    from pyiceberg.expressions import AlwaysTrue
    from pyiceberg.io.pyarrow import ArrowScan

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyiceberg.table import FileScanTask, Table

    from ripple.connectors.connector import Reading
    from ripple.model.batch import Batch

BLOCK_ROWS = 1 << 16
PREFETCH_BLOCKS = 2


def open_source(path: str, reading: Reading) -> IcebergSource:
    """Return the source of a table; raises InputError."""
    return IcebergSource(TableUri.parse(path, InputError), reading)


class IcebergSource:
    """The rows of one snapshot, the present one unless another is named; see Source.

    The snapshot's files are read in the order of their names, so an offset is of the same row
    whenever that snapshot is read.
    """

    def __init__(self, place: TableUri, reading: Reading) -> None:
        """Look at the table. Raises InputError."""
        self.name = reading.name
        self._place, self._reading_of = place, reading
        with one_line_errors(f"cannot read {place}", InputError):
            table = table_in(catalog_of(place, InputError), place)
            if table is None:
                raise InputError(f"cannot read {place}: there is no such table")
            self._table: Table = table
            self._snapshot = self._chosen(table)
        self._reading = OpenReading()

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        self.close()
        return self._reading.begin(self._read(from_offset))

    def close(self) -> None:
        """Stop reading, and release the thread."""
        self._reading.close()

    def _chosen(self, table: Table) -> int | None:
        """Return the number of the snapshot, None of a table without one."""
        asked = self._place.snapshot
        if not asked:
            present = table.current_snapshot()
            return None if present is None else present.snapshot_id
        found = (
            table.snapshot_by_id(int(asked)) if asked.isdecimal() else table.snapshot_by_name(asked)
        )
        if found is None:
            raise InputError(
                f"cannot read {self._place}: it has no snapshot {asked}: it may have expired"
            )
        return int(found.snapshot_id)

    def _read(self, from_offset: int) -> Generator[Batch, None, None]:
        ahead = prefetched(self._blocks(from_offset), PREFETCH_BLOCKS, lambda: None, waits=False)
        try:
            yield from recut(ahead, self._reading_of.batch_rows, from_offset)
        finally:
            ahead.close()

    def _blocks(self, from_offset: int) -> Iterator[Batch]:
        shape, name = self._reading_of.shape, str(self._place)
        asked = shape.read_schema()
        with one_line_errors(f"cannot read {name}", InputError):
            scan = self._table.scan(snapshot_id=self._snapshot)
            found = scan.projection().as_arrow()
            is_empty = self._snapshot is None
            check_columns(found, asked, name, is_empty=is_empty, shape=shape)
            if is_empty:
                return
            leaves = with_leaf_types(found, asked.names, name)
            tops = {one.partition(".")[0] for one in asked.names if one in leaves.names}
            scan = scan.select(*(one for one in found.names if one in tops))
            files = sorted(scan.plan_files(), key=lambda task: str(task.file.file_path))
            rows = ArrowScan(self._table.metadata, self._table.io, scan.projection(), AlwaysTrue())
            files, offset = _from(files, from_offset)
            for task in files:
                for block in rows.to_record_batches([task]):
                    for at in range(0, block.num_rows, BLOCK_ROWS):
                        batch = screened(block.slice(at, BLOCK_ROWS), shape, offset, {}, None)
                        offset = batch.next_offset
                        yield batch


def _from(files: list[FileScanTask], offset: int) -> tuple[list[FileScanTask], int]:
    """Return the files that reach beyond an offset, and their first one."""
    first = 0
    for at, task in enumerate(files):
        if task.delete_files or first + task.file.record_count > offset:
            return files[at:], first
        first += task.file.record_count
    return [], first
