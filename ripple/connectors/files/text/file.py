"""A text file with a cut record, so that a restarted pipeline continues it."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import CutRecord, Owner
from ripple.connectors.files.text.reading_back import rows_in
from ripple.connectors.files.text.sink import TextLines
from ripple.connectors.files.text.uses import ONCE
from ripple.core.codec.crc import crc32c
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP
from ripple.world.paths import folder_of
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from ripple.connectors.contract import Commit
    from ripple.connectors.files.text.sink import TextFormat
    from ripple.model.schema.exported import Made
    from ripple.world.ports import Disk, File, Guards

READ_BYTES = 1 << 20


class FileSink:
    """A Sink that appends lines to ``path``; ``path.cut`` records the last commit.

    Invariants: the first ``end`` bytes of the file, by the record, are durable and never change;
    later bytes are of uncommitted cuts, and cut off by the next opening. A file without a record
    is the user's, and is not touched. ``path.lock`` keeps a second writer out.
    """

    records_cut = True
    takes_made = True  # see OutputStatus
    unfinished: Mapping[str, int] | None = None
    promise = ONCE

    def __init__(
        self,
        disk: Disk,
        path: str,
        text_format: TextFormat,
        owner: Owner,
        columns: Sequence[str],
        *,
        name: str | None = None,
        guards: Guards = all_guards,
    ) -> None:
        """Continue the file, or begin it where neither it nor its record exists.

        columns: as they are written. name: of the file, for errors. guards: which safeguards are
        on, for tests of the tests. Raises OutputError and DiskLockedError with nothing changed,
        and OSError.
        """
        self.name = name or path
        self.cut_off_bytes = 0
        self._disk = disk
        self._path = path
        self._record_path = f"{path}.cut"
        self._owner = owner
        self._columns = tuple(columns)
        self._format = text_format
        self._guards = guards
        self._lines = TextLines(text_format, self.name)
        self._failure = ""
        self._file: File | None = None
        self._is_begun = False
        self._length = self._crc = 0
        self.committed: Commit | None = None
        # Before the lock, so that a user's file gets no lock file.
        _examine(disk, path, owner, self._columns, self.name)
        self._has_made_lock = not disk.exists(f"{path}.lock")
        self._lock = disk.lock(f"{path}.lock", str(owner))
        try:
            self._open(_examine(disk, path, owner, self._columns, self.name))
        except BaseException:
            self.close()
            raise

    def write(self, changes: pa.RecordBatch | Made, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Append one line per row; see Sink."""
        if self._failure:
            raise OutputError(f"{self.name}: {self._failure}: open it again")
        self._append(self._lines.of(changes, is_first=self._length == 0))

    def _append(self, lines: bytes) -> None:
        if not lines:
            return
        assert self._file is not None
        self._check_there(self._file)
        try:
            self._file.append(lines)
        except OSError:
            self._take_back()
            raise
        self._crc = crc32c(lines, self._crc)
        self._length += len(lines)

    def shown_keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the changes in the lines, if they name their operations; see KnowingSink.

        Lines of CSV never say that a key is gone, so readers cannot be told of removals.
        """
        assert self._file is not None
        if self._format.form == "json" and self._format.removes == "mark":
            yield from rows_in(self._file, self._length, (*key, OP))

    def commit(self, reached: Commit) -> None:
        """Make the lines durable, then the record; see Sink."""
        assert self._file is not None
        self._check_there(self._file)
        if not self._length:
            self._append(self._lines.heading(self._columns))
        if self._guards("data_sync"):
            self._file.sync()
        record = CutRecord(self._owner, self._columns, reached, self._length, self._crc)
        cut_record.write(self._disk, self._record_path, record, self._guards)
        self.committed = reached

    def close(self) -> None:
        """Release the file and the lock; remove them if this sink began them, and wrote nothing."""
        self._failure = self._failure or "it was closed"
        if self._file is not None:
            self._file.close()
        if self._is_begun and self.committed is None and not self._length:
            with suppress(OSError):  # remaining files are resumed
                self._withdraw()
        self._is_begun = False
        self._lock.release()

    def _check_there(self, file: File) -> None:
        """Raise OutputError unless readers find exactly the written bytes."""
        way_out = (
            f"bring back the one that was written, or remove it and {self._record_path} to begin "
            "anew"
        )
        if not file.is_named():
            raise OutputError(f"{self.name} was removed or renamed while it was written: {way_out}")
        size = file.size()
        if size != self._length and self._guards("truncation"):
            raise OutputError(
                f"{self.name} has {size} bytes, but {self._length} were written: another process "
                f"has changed it: {way_out}"
            )

    # --- opening ---

    def _open(self, record: CutRecord | None) -> None:
        if record is None:
            self._is_begun = True
            record = CutRecord(self._owner, self._columns)
            cut_record.write(self._disk, self._record_path, record, self._guards)
        # A process that was killed may have left names that are not durable yet: the record's must
        # be before the file is there, the file's before a record says that it reaches anything.
        self._sync_names()
        self._file = self._disk.open(self._path, create=True)
        self._check(self._file, record)
        if self._guards("truncation"):
            self.cut_off_bytes = self._file.size() - record.end
            self._file.truncate(record.end)
        self._sync_names()
        self.committed = record.reached
        self._length, self._crc = record.end, record.crc

    def _withdraw(self) -> None:
        """Remove the files of a failed start, the data first: without a record it is the user's."""
        self._remove(self._path)
        self._sync_names()
        self._remove(self._record_path)
        self._remove(f"{self._record_path}.tmp")
        if self._has_made_lock:
            self._remove(f"{self._path}.lock")

    def _remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._disk.remove(path)

    def _sync_names(self) -> None:
        if self._guards("name_sync"):
            self._disk.sync_folder(folder_of(self._path))

    def _check(self, file: File, record: CutRecord) -> None:
        """Raise OutputError unless the committed bytes are as they were written."""
        _check_size(file, record, self._record_path, self.name)
        if _crc_of(file, record.end) != record.crc:
            raise OutputError(
                f"{self.name} was changed within the {record.end} bytes that were committed: "
                f"restore it, or remove it and {self._record_path} to start over"
            )

    def _take_back(self) -> None:
        """Remove the rest of a failed append."""
        assert self._file is not None
        try:
            self._file.truncate(self._length)
        except OSError as error:
            self._failure = f"a write failed, and so did taking it back ({error})"


def look_at(disk: Disk, path: str, owner: Owner, columns: Sequence[str], name: str) -> None:
    """Raise as a FileSink would, with nothing changed; the bytes themselves are not read."""
    record = _examine(disk, path, owner, tuple(columns), name)
    owner.check_lock(disk, f"{path}.lock")
    if record is not None and disk.exists(path):
        with closing(disk.open_to_read(path)) as file:
            _check_size(file, record, f"{path}.cut", name)


def _examine(
    disk: Disk, path: str, owner: Owner, columns: tuple[str, ...], name: str
) -> CutRecord | None:
    """Return the record; raise OutputError for files that cannot be continued."""
    record_path = f"{path}.cut"
    way_out = f"restore it and {name} from a copy, or remove both to start over"
    record = cut_record.read(disk, record_path, way_out=way_out)
    is_there = disk.exists(path)
    if record is None:
        if is_there:
            raise OutputError(
                f"{name} exists, but {record_path}, which would say how far it reaches, does not: "
                "name another file, or remove this one"
            )
        return None
    record.check_owner(owner, name)
    record.check_columns(columns, name, "file")
    # Between the first record and the file, a crash may have come.
    if not is_there and record.reached is not None:
        raise OutputError(
            f"{name} is gone, but {record_path} says that it had {record.end} bytes: restore it, "
            f"or remove {record_path} to start over"
        )
    return record


def _check_size(file: File, record: CutRecord, record_path: str, name: str) -> None:
    size = file.size()
    if size < record.end:
        raise OutputError(
            f"{name} has {size} bytes, but {record.end} were committed: restore it, or remove it "
            f"and {record_path} to start over"
        )


def _crc_of(file: File, length: int) -> int:
    crc = 0
    for at in range(0, length, READ_BYTES):
        crc = crc32c(file.read(at, min(READ_BYTES, length - at)), crc)
    return crc
