"""Changes as records of an event log, with their cuts in the log itself."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.contract import Commit
from ripple.connectors.files.text import cut_record
from ripple.connectors.files.text.cut_record import CutRecord, Owner, from_json, to_json
from ripple.connectors.log.connector import APPENDED, ONCE
from ripple.core.codec.compression import Compression
from ripple.core.errors import LimitError, OutputError, SchemaError
from ripple.core.row_ops import OP, with_named_ops
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, Option, Schema, String
from ripple.storage.log import (
    LogError,
    LogSettings,
    PartitionReader,
    PartitionWriter,
    StaleEpochError,
    Topic,
)
from ripple.storage.log.body import columns_of
from ripple.storage.log.epochs import newest_owner
from ripple.storage.log.owner_locks import OwnerLocks
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from ripple.core.cut import Cut
    from ripple.model.pipeline.nodes import Output
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import Clock, Disk, Guards

NOTE = "ripple.reached"
# The cut of a partition at rest, after a stage has fewer partitions again: no input, no rows.
AT_REST = Commit({}, f"{0:016x}")

_RECORD = re.compile(r"output(?:-([0-9]{10}))?\.cut")


def schema_of_output(plan: Plan, output: Output) -> Schema:
    """Return the schema of an output's changes as records.

    ``op`` is text, one of OP_NAMES; the other fields are those of the result rows. Fields outside
    the key may be null, because a Remove has no values: not even the end of a session, which does
    not identify it. Events have neither: their topic can be a source.
    """
    if output.is_stream:
        return Schema(f"{plan.name}.{output.name}", output.fields)
    identity = {member.name for member in plan.key_of(output)}
    fields = (
        member
        if member.name in identity or isinstance(member.type, Option)
        else Field(member.name, member.type, optional=True)
        for member in output.fields
    )
    return Schema(f"{plan.name}.{output.name}", (Field(OP, String()), *fields))


def topic_for(disk: Disk, path: str, schema: Schema, partitions: int = 1) -> Topic:
    """Return the topic at ``path``, made with ``schema`` and ``partitions`` if there is none.

    Raises OutputError naming the first field in which its schema differs.
    """
    try:
        # Each commit syncs, so that appends need not. Most frames have few rows, and are smaller by
        # half when they are compressed: their schema is larger than their rows.
        settings = LogSettings(sync_appends=0, compression=Compression.ZSTD)
        topic = Topic.ensure(disk, path, schema, partitions=partitions, settings=settings)
    except (LogError, SchemaError) as error:
        raise OutputError(f"cannot write: {error}") from error
    check_schema(topic, path, schema)
    return topic


def check_schema(topic: Topic, path: str, schema: Schema) -> None:
    """Raise OutputError naming the first field in which a topic's schema differs."""
    found, wanted = list(columns_of(topic.schema)), list(columns_of(schema))
    for have, want in zip(found, wanted, strict=False):
        if have != want:
            raise OutputError(
                f"topic {path} has the field {_text(have)} where the output has {_text(want)}: "
                "name another topic"
            )
    if len(found) != len(wanted):
        raise OutputError(
            f"topic {path} has the fields {', '.join(one.name for one in found)}, the output has "
            f"{', '.join(one.name for one in wanted)}: name another topic"
        )


def _text(field: pa.Field) -> str:
    return f"{field.name!r} ({field.type}{', may be none' if field.nullable else ''})"


class LogSink:
    """A Sink that appends to a partition of a topic as its only writer.

    With an owner it records its cut: each frame has in its notes its cut and how many of the cut's
    rows it completes, so that the last frame says where to resume. Cuts without changes leave no
    frame: for them ``commit`` stores a record next to the segments.

    Without an owner it appends without cuts, and rejects a partition with an owner, who could not
    resume.

    Invariant: ``_start`` is the offset at which the changes of ``_current`` begin, so that
    ``next_offset - _start`` of its ``_rows`` rows are in the log.
    """

    takes_stored = True  # see OutputStatus

    def __init__(
        self,
        topic: Topic,
        partition: int,
        clock: Clock,
        owner: Owner | None = None,
        *,
        name: str | None = None,
        is_new: bool = False,
        epoch: int | None = None,
        guards: Guards = all_guards,
    ) -> None:
        """Take the partition's lock, or take it over, and find out the last cut.

        name: of the target, for errors. is_new: whether the topic was made for this sink, which
        removes it if it writes nothing. epoch: of the partition's owner, see PartitionWriter.
        guards: which safeguards are on, for tests of the tests. Raises OutputError,
        DiskLockedError, StaleEpochError and OSError.
        """
        self.name = name or f"{topic.path}/{partition}"
        self.records_cut = owner is not None
        self.promise = ONCE if self.records_cut else APPENDED
        self.committed: Commit | None = None
        self.beside: list[LogSink] = []
        """Partitions that this one takes over; see ``ripple.connectors.log.grown``."""
        self.others: tuple[Cut, ...] = ()
        self.is_at_rest = False
        self._current: Commit | None = None
        self._start = self._rows = 0
        self._has_forgotten = False
        self._disk = topic.disk
        self._owner = owner
        self._columns = tuple(field.name for field in topic.schema.fields)
        self._is_new = is_new
        self._guards = guards
        try:
            holder = str(owner or "another run")
            self._writer = PartitionWriter(
                topic, partition, clock, holder=holder, epoch=epoch, guards=guards
            )
            self._record_path = _record_path(topic, partition, self._writer.epoch)
        except StaleEpochError:
            raise
        except LogError as error:
            raise OutputError(f"cannot write {self.name}: {error}") from error
        try:
            with PartitionReader(topic, partition) as reader:
                if owner is None:
                    self._check_free(reader)
                else:
                    self._resume(reader, owner)
        except BaseException:
            self._writer.close()
            raise
        self.cut_off_bytes = self._writer.tail.length if self._writer.tail is not None else 0
        self._reached: Commit | None = self.committed

    @property
    def epoch(self) -> int:
        """The epoch of the partition's owner, which fences those before; 0 for none."""
        return self._writer.epoch

    @property
    def unfinished(self) -> Mapping[str, int] | None:
        """A cut of which some changes are there, and some are not; see Sink."""
        if self._current is None or not 0 < self._writer.next_offset - self._start < self._rows:
            return None
        return self._current.cut

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Append the changes that are not yet in the log; see Sink."""
        if self._owner is None:
            if changes.num_rows:
                _append(self._writer, self._records(changes), lambda _: None)
            return
        if reached != self._current:
            if self.unfinished is not None:
                raise OutputError(
                    f"{self.name} holds a part of the changes up to {dict(self.unfinished)}: they "
                    f"must be completed before those up to {dict(reached.cut)}"
                )
            self._current, self._start = reached, self._writer.next_offset
            self._rows = changes.num_rows
        done = self._writer.next_offset - self._start if self._guards("skipped_rows") else 0
        if changes.num_rows != self._rows or done > self._rows:
            raise OutputError(
                f"{self.name} holds {done} of {self._rows} changes up to {dict(reached.cut)}, and "
                f"now they are {changes.num_rows}: the pipeline was changed, or is not a function "
                "of its input"
            )
        if done < self._rows:
            note = _Note(self._owner, reached, self._rows, self._reached)
            left = self._records(changes.slice(done))
            _append(self._writer, left, lambda rows: note.notes(done + rows))
        self._reached = reached

    def _records(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Return changes with their operations as texts, events as they are."""
        return with_named_ops(changes) if OP in self._columns else changes

    def supersede(self) -> None:
        """Give an unfinished cut up; see ReadableSink."""
        self._current = None

    def mark(self) -> str:
        """Return the next offset; see ReadableSink."""
        return str(self._writer.next_offset)

    def written_since(self, mark: str | None) -> Iterator[pa.RecordBatch]:
        """Yield records from an offset on; see ReadableSink."""
        with PartitionReader(self._writer.topic, self._writer.partition) as reader:
            first, end = reader.range()
            start = first if mark is None else max(first, int(mark))
            if start > end:
                raise OutputError(
                    f"{self.name} ends at offset {end}, but a checkpoint knows it up to {start}: "
                    "restore it, or begin with another folder of checkpoints"
                )
            for entry in reader.read(start):
                if isinstance(entry, Batch):
                    yield entry.records

    def commit(self, reached: Commit) -> None:
        """Make the log durable, then the record; see Sink."""
        if self.unfinished is not None:
            raise OutputError(f"{self.name}: the cut {dict(self.unfinished)} is not complete")
        if self._guards("data_sync"):
            self._writer.sync()
        if self._owner is None:
            self._is_new = False
            return
        end, crc = self._writer.next_offset, self._writer.last_crc
        record = CutRecord(self._owner, self._columns, reached, end, crc)
        # A resume trusts a last frame that is ahead of the record. The first record of an owner
        # outlives the records of earlier owners, which are removed.
        may_be_older = self._has_forgotten and self._is_told_by_frame(reached)
        cut_record.write(
            self._disk, self._record_path, record, self._guards, may_be_older=may_be_older
        )
        self._writer.check_owner()
        self._forget_records()
        self.committed = reached
        self._is_new = False

    def _is_told_by_frame(self, reached: Commit) -> bool:
        """Return whether the last frame has this cut, and the last of its rows."""
        is_whole = self._writer.next_offset - self._start == self._rows
        return self._rows > 0 and is_whole and reached == self._current

    def _forget_records(self) -> None:
        """Remove the records of earlier owners, once: they are not needed any more."""
        if not self._has_forgotten:
            self._has_forgotten = True
            topic, partition = self._writer.topic, self._writer.partition
            for epoch in _owners_with_records(topic, partition):
                if epoch < self._writer.epoch:
                    with suppress(FileNotFoundError):
                        self._disk.remove(_record_path(topic, partition, epoch))

    def rest(self, removed: pa.RecordBatch) -> None:
        """Put the partition at rest: remove its last rows, and release it."""
        self.supersede()
        if removed.num_rows:
            self.write(removed, AT_REST)
        self.commit(AT_REST)
        self.close()

    def close(self) -> None:
        """Release the partition; readers have seen the appended changes, so they stay.

        A topic that was made for this sink is removed if it is empty.
        """
        for one in self.beside:
            one.close()
        if self._is_new and not self._writer.next_offset:
            with suppress(OSError):  # remaining files are resumed
                self._writer.withdraw()
        self._is_new = False
        self._writer.close()

    # --- opening ---

    def _check_free(self, reader: PartitionReader) -> None:
        owner = _owner_of(reader)
        if owner is not None:
            raise OutputError(f"{self.name} belongs to {owner}: choose another URI")

    def _resume(self, reader: PartitionReader, owner: Owner) -> None:
        record = _newest_record(reader.topic, reader.partition)
        if record is not None:
            record.check_owner(owner, self.name)
            bounds = self._writer.first_offset, self._writer.next_offset
            _check(reader, record, self.name, *bounds)
            self.committed = record.reached
        end = self._writer.next_offset
        self._start = end
        self.is_at_rest = record is not None and (record.reached, record.end) == (AT_REST, end)
        if end == self._writer.first_offset or not self._guards("cut_in_frame"):
            return
        note = _check_written(_Note.of(reader.notes_at(end - 1)), owner, self.name)
        self._current, self._rows = note.reached, note.rows
        self._start = end - note.rows_to
        if record is None or record.end < end:
            self.committed = note.since if self.unfinished is not None else note.reached


def look_at(
    topic: Topic, partition: int, owner: Owner, name: str, *, epoch: int | None = None
) -> int:
    """Raise as a LogSink with that owner would, with nothing changed; return the newest epoch.

    epoch: of the partition's owner, which needs no locks.
    """
    disk, folder = topic.disk, topic.folder(partition)
    if not disk.exists(folder):
        return 0
    record = _newest_record(topic, partition)
    try:
        if epoch is None:
            locks = OwnerLocks(disk, folder, str(owner))
            try:
                locks.take_all()
            finally:
                locks.release()
        with PartitionReader(topic, partition) as reader:
            first, end = reader.range()
            if record is not None:
                record.check_owner(owner, name)
                _check(reader, record, name, first, end)
            if first != end:
                _check_written(_Note.of(reader.notes_at(end - 1)), owner, name)
        return newest_owner(disk, folder)
    except LogError as error:
        raise OutputError(f"cannot write {name}: {error}") from error


def _check_written(note: _Note | None, owner: Owner, name: str) -> _Note:
    """Raise OutputError unless the last records of a partition are of this output."""
    if note is None:
        raise OutputError(f"{name} holds records that no output has written: choose another URI")
    CutRecord(note.owner, ()).check_owner(owner, name)
    return note


def _check(reader: PartitionReader, record: CutRecord, name: str, first: int, end: int) -> None:
    """Raise OutputError unless the log, with these bounds, is the record's log."""
    path = _newest_record_path(reader.topic, reader.partition)
    if end < record.end:
        raise OutputError(
            f"{name} ends at offset {end}, but {record.end} were committed: restore it, or remove "
            f"{path} to resume from the log"
        )
    if record.end > first:
        header = reader.frame_with(record.end - 1).header
        if (header.next_offset, header.crc) != (record.end, record.crc):
            raise OutputError(
                f"{name} holds other records before offset {record.end} than those that were "
                f"committed: restore it, or remove {path} to start over"
            )


def written_in(
    topic: Topic, partition: int, mark: str | None
) -> Iterator[tuple[pa.RecordBatch, str]]:
    """Yield the changes after a mark of a LogSink, and the marks after them, up to the end."""
    if partition >= topic.partitions or not topic.disk.exists(topic.folder(partition)):
        return
    with PartitionReader(topic, partition) as reader:
        first, end = reader.range()
        for entry in reader.read(first if mark is None else max(first, int(mark)), end):
            if isinstance(entry, Batch):
                yield entry.records, str(entry.next_offset)


def committed_in(topic: Topic, partition: int, owner: Owner | None = None) -> Commit | None:
    """Return the commit of a partition's newest owner, as external readers may ask.

    An owner that was replaced may have written a record that does not count: the next owner finds
    out. owner: the only permitted writer, else OutputError.
    """
    record = _newest_record(topic, partition)
    if record is not None and owner is not None:
        record.check_owner(owner, f"{topic.path}/{partition}")
    return None if record is None else record.reached


def reached_in(topic: Topic, partition: int) -> Commit | None:
    """Return the cut of all rows of a partition together, for comparisons.

    None if it is unknown: no owner wrote there. Raises OutputError if the changes of the last cut
    are there only in part.
    """
    record = _newest_record(topic, partition)
    with PartitionReader(topic, partition) as reader:
        first, end = reader.range()
        note = None if first == end else _Note.of(reader.notes_at(end - 1))
    if record is not None and record.end >= end:
        return record.reached
    if note is None:
        return None
    if note.rows_to < note.rows:
        raise OutputError(
            f"{topic.path}/{partition} holds {note.rows_to} of {note.rows} changes up to "
            f"{dict(note.reached.cut)}: its writer was interrupted, or is at work"
        )
    return note.reached


def resumed_in(topic: Topic, partition: int) -> Commit | None:
    """Return an owner's resume point: the commit of the record, or of a frame after it.

    It is durable once an owner has opened the partition, since that syncs it. None if there is
    none.
    """
    record = _newest_record(topic, partition)
    with PartitionReader(topic, partition) as reader:
        first, end = reader.range()
        note = None if first == end else _Note.of(reader.notes_at(end - 1))
    if note is None or (record is not None and record.end >= end):
        return None if record is None else record.reached
    return note.since if note.rows_to < note.rows else note.reached


def changes_in(
    topic: Topic, partition: int, end: int
) -> Iterator[tuple[Mapping[str, int], pa.RecordBatch, bool]]:
    """Yield (cut, changes, whether they complete it) for each frame before offset ``end``.

    Raises OutputError for a frame without a cut.
    """
    with PartitionReader(topic, partition) as reader, PartitionReader(topic, partition) as notes:
        for entry in reader.read(None, end):
            if isinstance(entry, Batch):
                note = _Note.of(notes.notes_at(entry.next_offset - 1))
                if note is None:
                    raise OutputError(f"{topic.path}/{partition} has records without a cut")
                yield note.reached.cut, entry.records, note.rows_to >= note.rows


def cuts_in(topic: Topic, partition: int, rows: int) -> Iterator[tuple[Mapping[str, int], int]]:
    """Yield each cut of the last rows whose changes are all there, and the offset after them.

    A cut whose changes came in two commits is there twice. Raises OutputError for a frame without a
    cut.
    """
    with PartitionReader(topic, partition) as reader, PartitionReader(topic, partition) as notes:
        first, end = reader.range()
        for entry in reader.read(max(first, end - rows)):
            note = _Note.of(notes.notes_at(entry.next_offset - 1))
            if note is None:
                raise OutputError(f"{topic.path}/{partition} has records without a cut")
            if note.rows_to >= note.rows:
                yield note.reached.cut, entry.next_offset
    record = _newest_record(topic, partition)
    if record is not None and record.reached is not None:
        yield record.reached.cut, record.end


def newest_committer(topic: Topic, partition: int) -> int:
    """Return the epoch of the newest owner that has committed, 0 for none."""
    return max(_owners_with_records(topic, partition), default=0)


def cut_at(reader: PartitionReader, offset: int) -> Mapping[str, int] | None:
    """Return the cut to which the record at an offset belongs, None in a log that has none."""
    note = _Note.of(reader.notes_at(offset))
    return None if note is None else note.reached.cut


@dataclass(frozen=True, slots=True)
class _Note:
    """A frame's notes on its cut: the changes have ``rows`` rows, ``rows_to`` of them with it.

    since: the cut before.
    """

    owner: Owner
    reached: Commit
    rows: int
    since: Commit | None
    rows_to: int = 0

    def notes(self, rows_to: int) -> dict[str, str]:
        """Return the notes of the frame with which ``rows_to`` rows are there."""
        held = {
            "owner": self.owner,
            "reached": to_json(self.reached),
            "rows": self.rows,
            "rows_to": rows_to,
            "since": to_json(self.since),
        }
        return {NOTE: json.dumps(held)}

    @classmethod
    def of(cls, notes: Mapping[str, str]) -> _Note | None:
        """Return the content of a frame, None if it is not of an output."""
        if NOTE not in notes:
            return None
        held = json.loads(notes[NOTE])
        reached = from_json(held["reached"])
        assert reached is not None
        since = from_json(held["since"])
        return cls(Owner(*held["owner"]), reached, held["rows"], since, held["rows_to"])


def _append(
    writer: PartitionWriter,
    records: pa.RecordBatch,
    notes: Callable[[int], Mapping[str, str] | None],
    before: int = 0,
) -> None:
    """Append records as one frame, or as several where they exceed the topic's limit.

    notes: of a frame, by how many of the records are there with it.
    """
    rows = records.num_rows
    try:
        writer.append(records, notes=notes(before + rows))
    except SchemaError as error:
        raise OutputError(
            f"cannot write {writer.topic.path}/{writer.partition}: {error}"
        ) from error
    except LimitError as error:
        if rows == 1:
            raise OutputError(f"a change is too long for the log: {error}") from error
        half = rows // 2
        _append(writer, records.slice(0, half), notes, before)
        _append(writer, records.slice(half), notes, before + half)


def _owner_of(reader: PartitionReader) -> Owner | None:
    """Return the output that a partition belongs to, None if it is free."""
    record = _newest_record(reader.topic, reader.partition)
    first_offset, next_offset = reader.range()
    if record is not None:
        return record.owner
    note = None if first_offset == next_offset else _Note.of(reader.notes_at(next_offset - 1))
    return None if note is None else note.owner


def _newest_record(topic: Topic, partition: int) -> CutRecord | None:
    """Return the record of the last owner that has one: writes of earlier ones do not count."""
    path = _newest_record_path(topic, partition)
    if path is None:
        return None
    way_out = "remove it to resume from the log itself"
    return cut_record.read(topic.disk, path, way_out=way_out)


def _newest_record_path(topic: Topic, partition: int) -> str | None:
    owners = _owners_with_records(topic, partition)
    return _record_path(topic, partition, max(owners)) if owners else None


def _owners_with_records(topic: Topic, partition: int) -> list[int]:
    found = map(_RECORD.fullmatch, topic.disk.list(topic.folder(partition)))
    return [int(one[1] or 0) for one in found if one is not None]


def _record_path(topic: Topic, partition: int, epoch: int) -> str:
    return f"{topic.folder(partition)}/output{f'-{epoch:010}' if epoch else ''}.cut"
