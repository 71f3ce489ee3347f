"""A folder of Parquet files in S3 that a restarted pipeline continues."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ripple.connectors.files.parquet.connector import ONCE
from ripple.connectors.files.parquet.part import (
    PART,
    PART_BYTES_MAX,
    PART_ROWS,
    check_whole,
    encoded,
    named,
    parsed,
    record_in,
    too_large,
)
from ripple.connectors.files.parquet.rows import as_rows
from ripple.connectors.files.remote.s3 import bucket_and_key
from ripple.connectors.files.remote.s3_writing import as_output, bucket_of, put
from ripple.connectors.files.text.cut_record import CutRecord, Owner
from ripple.core.errors import InputError, OutputError
from ripple.core.row_ops import OP
from ripple.world.live import LiveRandom

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.parquet as pq

    from ripple.connectors.contract import Commit

FULL_BYTES = 64 << 20
WRITER_BYTES = 16


class Last(NamedTuple):
    """The last object of a folder. etag: of it. rows: of it, None if it is full."""

    part: int
    etag: str
    rows: pa.Table | None
    record: CutRecord


class ObjectsSink:
    """A Sink that adds Parquet files to a folder of a bucket; see Sink.

    A commit is one put: of a new object, or of one in the place of the last, with the rows of both
    and the cut in its metadata. Both are conditional, so of two writers one fails. An
    object is full by its own content, of PART_ROWS rows or FULL_BYTES, and is not replaced then: so
    a writer that has lost its place finds another ETag, or a taken name.

    Invariants: rows in objects are committed. ``_rows`` are the rows since the last commit.
    """

    records_cut = True
    takes_maps = True  # see OutputStatus
    unfinished: Mapping[str, int] | None = None
    cut_off_bytes = 0
    promise = ONCE

    def __init__(self, folder: str, owner: Owner, columns: Sequence[str]) -> None:
        """Continue the folder, or begin it. Raises OutputError and OutputAwayError.

        folder: its address, without a slash at the end. columns: as they are written.
        """
        self.name = folder
        self._owner, self._columns = owner, tuple(columns)
        self._writer = LiveRandom().bytes(WRITER_BYTES).hex()
        self._last = examine(folder, owner, self._columns)
        self.committed = None if self._last is None else self._last.record.reached
        self._rows: list[pa.RecordBatch] = []

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Hold the changes until the next commit; see Sink."""
        rows = as_rows(changes, self.name, has_op=OP in self._columns)
        if rows.num_rows:
            self._rows.append(rows)

    def commit(self, reached: Commit) -> None:
        """Put the rows and the cut; see Sink. Raises OutputAwayError while the store is away."""
        last = self._last
        number = 1 if last is None else last.record.end + 1
        part, replaces, rows = 1, None, self._empty()
        if last is not None and last.rows is None:
            part = last.part + 1
        elif last is not None:
            part, replaces, rows = last.part, last.etag, last.rows
        if self._rows:
            added = pa.Table.from_batches(self._rows)
            rows = pa.concat_tables([rows, added]) if rows.num_rows else added
        record = CutRecord(self._owner, self._columns, reached, number)
        data = encoded(rows, record)
        if len(data) > PART_BYTES_MAX:
            raise too_large(self.name, len(data))
        etag = put(
            f"{self.name}/{named(part)}", memoryview(data), replaces=replaces, writer=self._writer
        )
        if etag is None:
            raise OutputError(f"cannot write {self.name}: another run has written it meanwhile")
        is_full = _is_full(rows.num_rows, len(data))
        self._last = Last(part, etag, None if is_full else rows, record)
        self._rows, self.committed = [], reached

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the changes in the objects, if they name their operations; see KnowingSink."""
        if OP not in self._columns or self._last is None:
            return
        for part in range(1, self._last.part + 1):
            file, _, _ = _opened(self.name, part)
            if file.metadata.num_rows:
                yield from file.iter_batches(columns=[*key, OP])

    def close(self) -> None:
        """Discard uncommitted changes."""
        self._rows.clear()

    def _empty(self) -> pa.Table:
        return pa.schema([(name, pa.null()) for name in self._columns]).empty_table()


def examine(folder: str, owner: Owner, columns: tuple[str, ...]) -> Last | None:
    """Return the last object of a folder, None without one; raises OutputError for another folder.

    It changes nothing. Raises OutputAwayError while the store is away.
    """
    names = _names_in(folder)
    parts = sorted(int(found[1]) for found in map(PART.fullmatch, names) if found)
    if not parts:
        if names:
            raise OutputError(
                f"{folder} holds {names[0]}, which is not of this output: name another"
            )
        return None
    check_whole(parts, folder, f"restore it from a copy, or remove {folder} to start over")
    file, etag, length = _opened(folder, parts[-1])
    record = record_in(file, folder)
    record.check_owner(owner, folder)
    record.check_columns(columns, folder, "folder")
    is_full = _is_full(file.metadata.num_rows, length)
    rows = None if is_full else file.read().replace_schema_metadata()
    return Last(parts[-1], etag, rows, record)


def _names_in(folder: str) -> list[str]:
    store, (bucket, key) = bucket_of(folder), bucket_and_key(folder)
    try:
        if store.find(folder) is not None:
            raise OutputError(
                f"{folder} is an object, and a run that is restarted writes a folder of objects: "
                "name another"
            )
        prefix = f"{key}/"
        return [name.removeprefix(prefix) for name, _ in store.listed(bucket, prefix)]
    except InputError as error:
        raise as_output(error) from error


def _opened(folder: str, part: int) -> tuple[pq.ParquetFile, str, int]:
    """Return an object, its ETag and its length."""
    path = f"{folder}/{named(part)}"
    try:
        data, version = bucket_of(path).read(path, 0, PART_BYTES_MAX)
    except InputError as error:
        raise as_output(error) from error
    return parsed(data, path), version.stamp, len(data)


def _is_full(rows: int, length_bytes: int) -> bool:
    return rows >= PART_ROWS or length_bytes >= FULL_BYTES
