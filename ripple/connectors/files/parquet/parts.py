"""A folder of Parquet files that a restarted pipeline continues."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

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
from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import CutRecord, Owner
from ripple.core.errors import LimitError, OutputError
from ripple.core.row_ops import OP
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.connectors.contract import Commit
    from ripple.world.ports import Disk, Guards

# Beside the folder, which has files of Parquet alone: some readers take every name for one.
RECORD, LOCK, DRAFT = ".cut", ".lock", ".tmp"


class PartsSink:
    """A Sink that adds Parquet files to a folder; see Sink.

    A commit is one file, complete and durable before it gets its name, with the cut in its
    metadata. A file of fewer than PART_ROWS rows is replaced by one with the rows
    of the next commit, too, so that their number grows with the rows and not with the commits. A
    commit without rows replaces the record, ``FOLDER.cut``.

    Invariants: rows in files are committed. ``_rows`` are the rows since the last commit,
    ``_tail`` the rows of the last file, if it will be replaced.
    """

    records_cut = True
    takes_maps = True  # see OutputStatus
    unfinished: Mapping[str, int] | None = None
    promise = ONCE

    def __init__(
        self,
        disk: Disk,
        folder: str,
        owner: Owner,
        columns: Sequence[str],
        *,
        name: str | None = None,
        guards: Guards = all_guards,
    ) -> None:
        """Continue the folder, or begin it where there is none, or an empty one.

        columns: as they are written. name: of the folder, for errors. guards: which safeguards are
        on, for tests of the tests. Raises OutputError and DiskLockedError with nothing changed, and
        OSError.
        """
        self.name = name or folder
        self.cut_off_bytes = 0
        self._disk, self._folder, self._guards = disk, folder, guards
        self._owner, self._columns = owner, tuple(columns)
        self._rows: list[pa.RecordBatch] = []
        self._tail: list[pa.RecordBatch] = []
        self._failure = ""
        examine(disk, folder, owner, self._columns, self.name)
        self._is_begun = not disk.exists(folder)
        self._has_made_lock = not disk.exists(folder + LOCK)
        self._lock = disk.lock(folder + LOCK, str(owner))
        try:
            disk.make_folder(folder)
            record, self._part = examine(disk, folder, owner, self._columns, self.name)
            with suppress(FileNotFoundError):
                disk.remove(folder + DRAFT)
            # A process that was killed may have left a name that is not durable yet.
            disk.sync_folder(folder)
            self._number = 0 if record is None else record.end
            self.committed = None if record is None else record.reached
            if self._part:
                self._read_tail()
        except BaseException:
            self._lock.release()
            raise

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Hold the changes until the next commit; see Sink."""
        if self._failure:
            raise OutputError(f"{self.name}: {self._failure}: open it again")
        rows = as_rows(changes, self.name, has_op=OP in self._columns)
        if rows.num_rows:
            self._rows.append(rows)

    def commit(self, reached: Commit) -> None:
        """Write a file with the rows and the cut, or else the record alone; see Sink."""
        record = CutRecord(self._owner, self._columns, reached, self._number + 1)
        if not self._rows:
            cut_record.write(self._disk, self._folder + RECORD, record, self._guards)
        else:
            self._add_part(record)
        self._number, self.committed = record.end, reached

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the changes in the files, if they name their operations; see KnowingSink."""
        if OP not in self._columns:
            return
        for part in range(1, self._part + 1):
            yield from self._opened(part).iter_batches(columns=[*key, OP])

    def close(self) -> None:
        """Release the folder; remove it if this sink began it, and committed nothing."""
        self._failure = self._failure or "it was closed"
        self._lock.release()
        if self._is_begun and self.committed is None:
            self._is_begun = False
            with suppress(OSError):  # the rest is continued
                self._disk.remove_folder(self._folder)
                if self._has_made_lock:
                    self._disk.remove(self._folder + LOCK)

    def _add_part(self, record: CutRecord) -> None:
        held = [*self._tail, *self._rows]
        part = self._part + (not self._tail)
        draft = self._folder + DRAFT
        with suppress(FileNotFoundError):  # of a failed attempt
            self._disk.remove(draft)
        file = self._disk.open(draft, create=True, exclusive=True)
        try:
            data = encoded(pa.Table.from_batches(held), record)
            if len(data) > PART_BYTES_MAX:
                raise too_large(self.name, len(data))
            file.append(memoryview(data))
            if self._guards("data_sync"):
                file.sync()
        finally:
            file.close()
        self._disk.rename(draft, self._at(named(part)))
        if self._guards("name_sync"):
            self._disk.sync_folder(self._folder)
        self._part, self._rows = part, []
        self._tail = held if sum(rows.num_rows for rows in held) < PART_ROWS else []

    def _read_tail(self) -> None:
        found = self._opened(self._part)
        if found.metadata.num_rows < PART_ROWS:
            table = found.read()
            self._tail = table.replace_schema_metadata().to_batches()

    def _opened(self, part: int) -> pq.ParquetFile:
        return _opened(self._disk, self._at(named(part)), f"{self.name}/{named(part)}")

    def _at(self, name: str) -> str:
        return f"{self._folder}/{name}"


def examine(
    disk: Disk, folder: str, owner: Owner, columns: tuple[str, ...], name: str
) -> tuple[CutRecord | None, int]:
    """Return the last commit and the number of files; raises OutputError for another folder."""
    names = _names_in(disk, folder)
    if names is None:
        raise OutputError(
            f"{name} is a file, and a run that is restarted writes a folder of files: name another"
        )
    record_path = folder + RECORD
    way_out = f"restore it from a copy, or remove {name} and {record_path} to start over"
    parts = [int(found[1]) for found in map(PART.fullmatch, names) if found]
    record = cut_record.read(disk, record_path, way_out=way_out)
    others = [one for one in names if not PART.fullmatch(one)]
    if others and not parts and record is None:
        raise OutputError(f"{name} holds {others[0]}, which is not of this output: name another")
    check_whole(parts, name, way_out)
    records = [] if record is None else [record]
    if parts:
        last = named(parts[-1])
        records.append(record_in(_opened(disk, f"{folder}/{last}", f"{name}/{last}"), name))
    if not records:
        return None, 0
    newest = max(records, key=lambda one: one.end)
    newest.check_owner(owner, name)
    newest.check_columns(columns, name, "folder")
    return newest, len(parts)


def _names_in(disk: Disk, folder: str) -> list[str] | None:
    """Return the names in a folder, none where it is absent; None for a file."""
    try:
        names = disk.list(folder)
        if not names and disk.exists(folder):
            disk.open_to_read(folder).close()
            return None
    except NotADirectoryError:
        return None
    except OSError:  # a folder without names
        return []
    return names


def _opened(disk: Disk, path: str, name: str) -> pq.ParquetFile:
    try:
        data = disk.read_bytes(path, length_max=PART_BYTES_MAX)
    except LimitError as error:
        raise OutputError(f"{name} cannot be read: {error}: restore it from a copy") from error
    return parsed(data, name)
