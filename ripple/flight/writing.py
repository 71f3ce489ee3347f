"""Logs that take what clients put: each batch is answered once it is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.errors import LimitError, SchemaError
from ripple.flight.errors import FlightError, Why
from ripple.log import LogError, Topic
from ripple.log.body import columns_of, conformed
from ripple.log.router import TopicWriter
from ripple.log_place import PREFIX, LogPlace
from ripple.world import LiveDisk

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.world.ports import Clock


class Written:
    """A topic of which this process is the only writer.

    A batch that is put again after an error may be there twice: nothing tells it from new records.
    """

    def __init__(self, place: str, clock: Clock, holder: str) -> None:
        """Take all partitions. Raises InputError, LogError and DiskLockedError."""
        parsed = LogPlace.parse(place)
        topic = Topic.open(LiveDisk(parsed.folder, make=False), parsed.topic)
        self.place = f"{PREFIX}{parsed.folder}/{parsed.topic}"
        self.columns = columns_of(topic.schema)
        # Half of what a frame holds: its records are not all equally long.
        self._slice_bytes = topic.settings.batch_bytes_max // 2
        self._writer = TopicWriter(topic, clock, holder=holder)

    def append(self, batch: pa.RecordBatch) -> dict[str, int]:
        """Append a batch, durably; return by partition how far the log reaches now.

        Raises FlightError, which names the field that does not fit; OSError.
        """
        extra = [name for name in batch.schema.names if name not in self.columns.names]
        if extra:
            fields = ", ".join(self.columns.names)
            raise FlightError(Why.WRONG, f"{self.place} has no field {extra[0]!r}: {fields}")
        reached: dict[str, int] = {}
        try:
            records = conformed(batch, self.columns)
            rows = max(1, self._slice_bytes * records.num_rows // max(1, records.nbytes))
            for start in range(0, records.num_rows, rows):
                for partition, where in self._writer.append(records.slice(start, rows)):
                    reached[str(partition)] = where.next_offset
            self._writer.sync()
        except (SchemaError, LimitError) as error:
            raise FlightError(Why.WRONG, f"{self.place}: {error}") from error
        except LogError as error:
            raise FlightError(Why.AWAY, f"{self.place}: {error}") from error
        return reached

    def close(self) -> None:
        """Let others write."""
        self._writer.close()
