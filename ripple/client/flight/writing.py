"""Logs that accept records of clients: a batch is acknowledged once it is durable."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.client.flight.errors import FlightError, Why
from ripple.core.errors import LimitError, SchemaError
from ripple.storage.log import LogError, Topic
from ripple.storage.log.body import columns_of, conformed
from ripple.storage.log.router import TopicWriter
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world import LiveDisk

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.world.ports import Clock, Executor


class Written:
    """A topic of which this process is the only writer, for any number of clients.

    Invariant: one call at a time uses the writer. A batch that is retried after an error may be
    duplicated: nothing tells it from new records.
    """

    def __init__(self, place: str, clock: Clock, holder: str, executor: Executor) -> None:
        """Open all partitions; executor: for the blocking writes.

        Raises InputError, LogError and DiskLockedError.
        """
        parsed = LogUri.parse(place)
        try:
            self._topic = Topic.open(LiveDisk(parsed.folder, make=False), parsed.topic)
        except LogError as error:
            raise LogError(f"cannot write {place}: {error}") from error
        self._clock, self._holder = clock, holder
        self._executor = executor
        self._turn = asyncio.Lock()
        self.place = f"{PREFIX}{parsed.folder}/{parsed.topic}"
        self.columns = columns_of(self._topic.schema)
        # Half of a frame's limit: records differ in length.
        self._slice_bytes = self._topic.settings.batch_bytes_max // 2
        self._writer: TopicWriter | None = self._opened()

    def _opened(self) -> TopicWriter:
        return TopicWriter(self._topic, self._clock, holder=self._holder)

    async def append(self, batch: pa.RecordBatch) -> dict[str, int]:
        """Append a batch, durably; return the end offset of each partition.

        Raises FlightError, which names an invalid field, or says that the batch may be retried.
        """
        async with self._turn:
            return await self._executor.run(self._append, batch)

    def _append(self, batch: pa.RecordBatch) -> dict[str, int]:
        extra = [name for name in batch.schema.names if name not in self.columns.names]
        if extra:
            fields = ", ".join(self.columns.names)
            raise FlightError(Why.WRONG, f"{self.place} has no field {extra[0]!r}: {fields}")
        for name, count in Counter(batch.schema.names).items():
            if count > 1:
                raise FlightError(Why.WRONG, f"the batch has the column {name!r} twice")
        reached: dict[str, int] = {}
        try:
            records = conformed(batch, self.columns)
            writer = self._writer = self._writer or self._opened()
            rows = max(1, self._slice_bytes * records.num_rows // max(1, records.nbytes))
            for start in range(0, records.num_rows, rows):
                for partition, where in writer.append(records.slice(start, rows)):
                    reached[str(partition)] = where.next_offset
            writer.sync()
        except (SchemaError, LimitError) as error:
            raise FlightError(Why.WRONG, f"{self.place}: {error}") from error
        except (LogError, OSError) as error:
            self._let_go()  # the next batch begins after the durable records
            raise FlightError(Why.AWAY, f"{self.place}: {error}") from error
        return reached

    def _let_go(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(OSError):
                writer.close()

    async def close(self) -> None:
        """Release the topic, once pending writes are done."""
        async with self._turn:
            await self._executor.run(self._let_go)
