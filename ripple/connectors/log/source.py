"""Records and markers from one partition of an embedded log."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.cutting import recut
from ripple.connectors.log.topic_fields import check_topic
from ripple.connectors.validation import screened
from ripple.core.row_ops import OP, OP_NAMES, OP_REMOVE
from ripple.model.batch import Batch, Marker
from ripple.model.pipeline.nodes import DELETED
from ripple.storage.log import PartitionReader, Topic, identity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.record_shape import RecordShape
    from ripple.storage.log.frame import Header

# A checkpoint asks about the frame just read; finding it again would mean reading all headers.
RECENT_FRAMES = 256


class LogSource:
    """One partition of a topic, up to ``to_offset``, or its present end, which ``follow`` passes.

    Offsets are the log's own. With ``shape``, records are screened as those of any source are; of a
    table, a removed row of an output's changes is a deletion.
    ``batch_rows`` joins small frames and divides large ones, to batches that end at its multiples
    (None: one batch a frame); a batch ends before a marker.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        *,
        name: str | None = None,
        shape: RecordShape | None = None,
        batch_rows: int | None = 1000,
        to_offset: int | None = None,
    ) -> None:
        """Read a partition.

        Raises TopicError if the topic has no such one, and SchemaError naming the field of
        ``shape`` that it does not have.
        """
        self.name = name or topic.path.rpartition("/")[2]
        if shape is not None:
            check_topic(topic.schema, shape.schema, self.name)
        self._reader = PartitionReader(topic, partition)
        self._shape = shape
        self._batch_rows = batch_rows
        self._to_offset = to_offset
        self._recent: deque[Header] = deque(maxlen=RECENT_FRAMES)

    def go_to(
        self, from_offset: int, batch_rows: int | None, to_offset: int | None
    ) -> Iterator[Batch | Marker | None]:
        """Go on with other sizes and another end, as ``follow`` of a source made with these."""
        self._batch_rows, self._to_offset = batch_rows, to_offset
        return self.follow(from_offset)

    def batches(self, from_offset: int = 0) -> Iterator[Batch | Marker]:
        """Yield batches and markers from ``from_offset`` on; see Source.

        Raises OffsetOutOfRangeError, LogDamagedError and LogDivergedError, which are InputErrors.
        """
        self._reader.seek(from_offset)
        return self._runs(self._available())

    def follow(self, from_offset: int = 0) -> Iterator[Batch | Marker | None]:
        """Yield as ``batches`` does, and None at the present end of the log; never ends."""
        self._reader.seek(from_offset)
        return self._followed()

    def _followed(self) -> Iterator[Batch | Marker | None]:
        while True:
            yield from self._runs(self._available())
            yield None

    def _runs(self, entries: Iterator[Batch | Marker]) -> Iterator[Batch | Marker]:
        while True:
            run = _Run(entries)
            yield from recut(run, self._batch_rows)
            if run.marker is None:
                return
            yield run.marker

    def look(self) -> None:
        """Let the reader look well at its next end: something has happened to the log."""
        self._reader.look()

    def sync(self) -> None:
        """Make the records read so far durable, before a cut that includes them is stored."""
        self._reader.sync()

    def range(self) -> tuple[int, int]:
        """Return the first offset that can be read now, and the one after the last."""
        return self._reader.range()

    def identity_at(self, offset: int) -> str:
        """Return the log's identity at ``offset``, for ``check_identity``."""
        for header in reversed(self._recent):
            if header.first_offset < offset <= header.next_offset:
                return identity.identity_of(header)
        with PartitionReader(self._reader.topic, self._reader.partition) as reader:
            return identity.identity_at(reader, offset)

    def check_identity(self, offset: int, text: str) -> None:
        """Raise an InputError if the log was changed.

        See ``ripple.storage.log.identity``.
        """
        if not text and self._reader.reaches(offset):
            return
        with PartitionReader(self._reader.topic, self._reader.partition) as reader:
            identity.check_identity(reader, offset, text)

    def close(self) -> None:
        """Release the file."""
        self._reader.close()

    def _available(self) -> Iterator[Batch | Marker]:
        while self._to_offset is None or self._reader.next_offset < self._to_offset:
            entry = self._reader.next(self._to_offset)
            if entry is None:
                return
            assert self._reader.header is not None
            self._recent.append(self._reader.header)
            yield self._shaped(entry) if isinstance(entry, Batch) else entry

    def _shaped(self, batch: Batch) -> Batch:
        if self._shape is None:
            return batch
        found = screened(batch.records, self._shape, 0)
        records = self._marked(found, batch.records)
        if not (batch.rejected or found.rejected):
            return Batch(records, batch.next_offset)
        offsets = batch.offsets()
        refused = (
            replace(bad, offset=int(offsets[bad.offset]), row=batch.records.slice(bad.offset, 1))
            for bad in found.rejected
        )
        rejected = sorted((*batch.rejected, *refused), key=lambda bad: bad.offset)
        return Batch(records, batch.next_offset, tuple(rejected))

    def _marked(self, found: Batch, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Return the found records of ``changes``, with the mark of removed rows for a table."""
        assert self._shape is not None
        table = self._shape.table
        if table is None or table.deleted != DELETED or not _is_of_output(changes.schema):
            return found.records
        ops = changes.column(OP).take(pa.array(found.offsets()))
        removed = pc.equal(ops, OP_NAMES[OP_REMOVE])
        return found.records.append_column(pa.field(DELETED, pa.bool_()), removed)


def _is_of_output(schema: pa.Schema) -> bool:
    return bool(schema.names[0] == OP and schema.types[0] == pa.string())


class _Run:
    """The batches up to the next marker, which is then ``marker``."""

    def __init__(self, entries: Iterator[Batch | Marker]) -> None:
        self.marker: Marker | None = None
        self._entries = entries

    def __iter__(self) -> Iterator[Batch]:
        for entry in self._entries:
            if isinstance(entry, Marker):
                self.marker = entry
                return
            yield entry
