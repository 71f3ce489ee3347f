"""Records from Parquet files, and changes to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from ripple.connectors.coercion import check_columns
from ripple.connectors.contract import BasicSink
from ripple.connectors.cutting import recut
from ripple.connectors.files.parquet.rows import as_rows
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.files.version import local_version
from ripple.connectors.open_reading import OpenReading
from ripple.connectors.prefetch import prefetched
from ripple.connectors.raw_record import raw_of
from ripple.connectors.target import open_target
from ripple.connectors.validation import screened
from ripple.core.errors import InputError
from ripple.core.row_ops import OP, place_of_op
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.fields import stored_fields
from ripple.model.schema.logical.showing import map_names, shown_schema
from ripple.model.schema.nested import with_leaf_types, with_leaves
from ripple.model.schema.time_form import BEYOND_INT64
from ripple.model.schema.types import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import numpy.typing as npt

    from ripple.connectors.connector import Reading, Writing
    from ripple.connectors.contract import Commit
    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.target import Target
    from ripple.connectors.validation import Shown
    from ripple.model.batch import Batch

BLOCK_ROWS = 1 << 16
BLOCK_BYTES = 3 << 20  # of long rows in Arrow's form, which are then fewer
SAMPLE_ROWS = 64
ROW_GROUP_ROWS = 1 << 17
PREFETCH_BLOCKS = 2


def open_source(path: str, reading: Reading) -> ParquetSource:
    """Return the source at ``path``, which is looked at when it is read."""
    return ParquetSource(path, reading.shape, name=reading.name, batch_rows=reading.batch_rows)


def open_sink(path: str, writing: Writing) -> ParquetSink:
    """Return the sink at ``path``; raises OutputError."""
    return ParquetSink(open_target(path), without_rows=lambda: _without_rows(writing))


def _without_rows(writing: Writing) -> pa.Schema:
    """Return the columns of an output of which no row came: as changes have them."""
    output, fields = writing.output, writing.output.fields
    maps = map_names(fields, (one.name for one in writing.plan.key_of(output)))
    shown = shown_schema(to_arrow(Schema("row", stored_fields(fields))), fields, maps)
    own = [] if output.is_stream else [pa.field(OP, pa.string())]
    return pa.schema([*own, *(one.with_nullable(True) for one in shown)])


class ParquetSource:
    """The rows of a Parquet file, in order, screened as records of ``shape``.

    Only the delivered columns and those with checks are read, BLOCK_ROWS rows or some MiB at a
    time, ahead of the consumer in a background thread. Raises SchemaError naming the first column
    that is missing or has another type.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._path = os.fspath(path)
        self._shape = shape
        self._batch_rows = batch_rows
        self._reading = OpenReading()

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        self.close()
        return self._reading.begin(self._read(from_offset))

    def close(self) -> None:
        """Stop reading, and release the file and the thread."""
        self._reading.close()

    def _read(self, from_offset: int) -> Generator[Batch, None, None]:
        with readable(self._path):
            file = pq.ParquetFile(_opened(self._path))
        with file:
            blocks = self._blocks(file, from_offset)
            ahead = prefetched(blocks, PREFETCH_BLOCKS, lambda: None, waits=False)
            try:
                yield from recut(ahead, self._batch_rows, from_offset)
            finally:
                ahead.close()

    def _blocks(self, file: pq.ParquetFile, from_offset: int) -> Iterator[Batch]:
        needed = self._shape.read_schema()
        is_empty = not file.metadata.num_rows
        check_columns(file.schema_arrow, needed, self._path, is_empty=is_empty, shape=self._shape)
        groups, offset = _groups_from(file, from_offset)
        found = with_leaf_types(file.schema_arrow, needed.names, self._path)
        present = [name for name in needed.names if name in found.names]
        try:
            for records, coarse in _blocks_of(file, self._path, groups, present):
                refused, shown = _beyond_ns(records, coarse, self._shape)
                batch = screened(records, self._shape, offset, refused, shown)
                offset = batch.next_offset
                yield batch
        except (OSError, pa.ArrowInvalid) as error:
            raise InputError(f"{self._path} is damaged: {_first_line(error)}") from error


def _opened(path: str) -> str | pa.NativeFile:
    """Return Arrow's input for a file. Raises InputError where it cannot be read."""
    if is_remote(path):
        from ripple.connectors.files.remote.ranged import RangedFile  # noqa: PLC0415 - few are

        return pa.PythonFile(RangedFile(path), "r")
    local_version(path)  # the system's error text is shorter than Arrow's
    return path


def _blocks_of(
    file: pq.ParquetFile, path: str, groups: list[int], names: list[str]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch | None]]:
    """Yield the rows, and once more with times in seconds where that tells more.

    Arrow reads the timestamps of older writers (INT96) as nanoseconds modulo 64 bits.
    """
    rows = _block_rows(file, groups, names)
    blocks = file.iter_batches(rows, groups, names, use_threads=False)
    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    times = [f"{leaf.path}." for leaf in leaves if leaf.physical_type == "INT96"]
    # A list's leaf is a path within its column.
    if not any(path.startswith(f"{name}.") for path in times for name in names):
        yield from ((records, None) for records in blocks)
        return
    with pq.ParquetFile(_opened(path), coerce_int96_timestamp_unit="s") as again:
        coarse = again.iter_batches(rows, groups, names, use_threads=False)
        yield from zip(blocks, coarse, strict=True)


def _block_rows(file: pq.ParquetFile, groups: list[int], names: list[str]) -> int:
    """Return how many rows are read at once: fewer where the first ones are long."""
    first = next(file.iter_batches(SAMPLE_ROWS, groups[:1], names, use_threads=False), None)
    if first is None or not first.nbytes:
        return BLOCK_ROWS
    return min(BLOCK_ROWS, max(1, BLOCK_BYTES * int(first.num_rows) // int(first.nbytes)))


def _beyond_ns(
    records: pa.RecordBatch, coarse: pa.RecordBatch | None, shape: RecordShape
) -> tuple[dict[int, str], Shown | None]:
    """Return the rows with times beyond 64 bits of nanoseconds, and how to show them."""
    refused: dict[int, str] = {}
    if coarse is None:
        return refused, None
    records, coarse = with_leaves(records, shape.paths), with_leaves(coarse, shape.paths)
    for name, column, seconds in zip(records.schema.names, records, coarse, strict=True):
        if any(parts[0] == name for parts in shape.paths.values()):
            continue  # its values are columns, too
        for row in _unlike(column, seconds):
            refused.setdefault(int(row), f"{name} {BEYOND_INT64}")
    return refused, lambda row: (None, raw_of(coarse, row))


def _unlike(column: pa.Array, seconds: pa.Array) -> npt.NDArray[np.intp]:
    """Return the rows in which times of a column, or within its values, are not those in seconds.

    Both are one column, read in two units.
    """
    found = np.empty(0, np.intp)
    if column.type == seconds.type:
        return found
    if kinds.is_timestamp(column.type):
        back = pc.floor_temporal(column, unit="second").cast(seconds.type)
        return np.flatnonzero(pc.not_equal(back, seconds).fill_null(False))
    if kinds.is_struct(column.type):
        members = zip(column.flatten(), seconds.flatten(), strict=True)
        return np.unique(np.concatenate([found, *(_unlike(*one) for one in members)]))
    ends = column.offsets.to_numpy()
    rows = np.repeat(np.arange(len(column)), np.diff(ends))
    first, items = int(ends[0]), int(ends[-1] - ends[0])
    within = _unlike(column.values.slice(first, items), seconds.values.slice(first, items))
    return np.unique(rows[within])


def _groups_from(file: pq.ParquetFile, from_offset: int) -> tuple[list[int], int]:
    """Return the row groups that reach beyond ``from_offset``, and their first offset."""
    first = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        if first + rows > from_offset:
            return list(range(group, file.num_row_groups)), first
        first += rows
    return [], first


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Raise InputError in the place of errors of the system, and of Arrow, about a file."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"cannot read {path}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


class ParquetSink(BasicSink):
    """Writes changes as row groups of a Parquet file; if they have ``op``, as text, and first.

    When no change comes, the file has the columns of ``schema`` or ``without_rows``, and no rows,
    and replaces an older one as any other does. Without both there are no columns and so no file.
    """

    takes_maps = True  # see OutputStatus

    def __init__(
        self,
        target: Target,
        schema: pa.Schema | None = None,
        *,
        row_group_rows: int = ROW_GROUP_ROWS,
        without_rows: Callable[[], pa.Schema] | None = None,
    ) -> None:
        self._target = target
        self._without_rows = without_rows
        self._schema = schema
        self._row_group_rows = row_group_rows
        self._writer: pq.ParquetWriter | None = None
        self._file = _TargetFile(target)
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self.name, self.promise = target.name, target.promise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Keep the changes until they fill a row group; see Sink."""
        rows = as_rows(changes, self._target.name, has_op=place_of_op(changes.schema) >= 0)
        self._schema = self._schema or rows.schema
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        if self._pending_rows >= self._row_group_rows:
            self._flush()

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Write the rest and the footer, and complete the target."""
        if self._schema is None:
            if self._without_rows is None:
                self.close()
                return
            self._schema = self._without_rows()
        self._flush()
        assert self._writer is not None
        self._writer.close()
        self._target.commit()

    def close(self) -> None:
        """Release the target, or give it up."""
        # The writer closes itself when it is collected: its footer must go nowhere.
        self._file.is_dropping = True
        self._pending.clear()
        self._target.close()

    def _flush(self) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, self._schema, compression="zstd")
        if self._pending_rows:
            self._writer.write_table(pa.Table.from_batches(self._pending, self._schema))
        self._pending, self._pending_rows = [], 0


class _TargetFile:
    """The part of a file's interface that the Parquet writer uses."""

    closed = False
    is_dropping = False

    def __init__(self, target: Target) -> None:
        self._target = target
        self._written = 0

    def write(self, data: bytes | memoryview) -> int:
        length = len(memoryview(data).cast("B"))
        if not self.is_dropping:
            self._target.write(data)
        self._written += length
        return length

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
