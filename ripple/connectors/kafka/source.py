"""One partition of a topic as the source of a one-shot run, up to its present end."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from ripple.connectors.cutting import recut
from ripple.connectors.formats.contract import batch_of, before
from ripple.connectors.kafka.inputs import READ_ROWS, check_there
from ripple.connectors.prefetch import prefetched
from ripple.core.errors import InputError
from ripple.world.broker import BrokerError, TopicPartition

if TYPE_CHECKING:
    from ripple.connectors.formats.contract import Values
    from ripple.connectors.kafka.inputs import Reader, ReaderConsumer
    from ripple.model.batch import Batch

BLOCKS_AHEAD = 2
WAIT_S = 0.5


class KafkaSource:
    """The records of a partition at the time of opening; see Source.

    Offsets are the topic's own, and begin where it does. A thread with an event loop of its own
    reads and decodes ahead. ``fraction_read``: of these records, None before the first batch.
    """

    def __init__(
        self,
        reader: Reader,
        place: TopicPartition,
        values: Values,
        *,
        name: str,
        batch_rows: int | None,
    ) -> None:
        self.name = name
        self.fraction_read: float | None = None
        self._reader = reader
        self._place = place
        self._values = values
        self._batch_rows = batch_rows
        self._is_closed = False
        self._reading: Generator[Batch, None, None] | None = None

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        self.close()
        self._is_closed = False
        self._reading = self._read(from_offset)
        return self._reading

    def close(self) -> None:
        """Stop reading, and let go of the connections."""
        self._interrupt()
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.close()

    def _interrupt(self) -> None:
        self._is_closed = True

    def _read(self, from_offset: int) -> Generator[Batch, None, None]:
        ahead = prefetched(self._blocks(from_offset), BLOCKS_AHEAD, self._interrupt)
        try:
            yield from recut(self._noting(ahead), self._batch_rows, from_offset)
        finally:
            ahead.close()

    def _noting(self, ahead: Iterator[tuple[float, Batch]]) -> Iterator[Batch]:
        for self.fraction_read, batch in ahead:
            yield batch

    def _blocks(self, from_offset: int) -> Iterator[tuple[float, Batch]]:
        with asyncio.Runner() as runner:
            try:
                yield from self._steps(runner, from_offset)
            except BrokerError as error:
                raise InputError(str(error)) from error
            finally:
                runner.run(self._reader.close())

    def _steps(self, runner: asyncio.Runner, from_offset: int) -> Iterator[tuple[float, Batch]]:
        first, end = runner.run(self._bounds())
        at = first = max(first, from_offset)
        consumer = runner.run(self._consumer(at))
        try:
            while at < end and not self._is_closed:
                batch = runner.run(self._step(consumer))
                if batch is None:
                    continue
                if batch.next_offset > end:  # written since
                    batch = before(batch, end)
                at = batch.next_offset
                yield (at - first) / (end - first), batch
        finally:
            runner.run(consumer.close())

    async def _bounds(self) -> tuple[int, int]:
        await self._reader.open()
        places = [self._place]
        first, end = await self._reader.earliest(places), await self._reader.ends(places)
        return first[self._place], end[self._place]

    async def _consumer(self, offset: int) -> ReaderConsumer:
        consumer = self._reader.consumer()
        consumer.assign({self._place: offset})
        return consumer

    async def _step(self, consumer: ReaderConsumer) -> Batch | None:
        """Read and decode some records, while the loop fetches the next."""
        found = await consumer.read(records_max=READ_ROWS, wait_s=WAIT_S)
        check_there(consumer)
        read = found.get(self._place)
        return None if read is None else await asyncio.to_thread(batch_of, read, self._values)
