"""Lanes in a topic of a broker: see LaneReading.

Writers commit whole cuts, so there are no void rows; the receiver deletes records that none of its
checkpoints needs, because it knows their offsets.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from ripple.connectors.reading_ahead import ReadAhead
from ripple.core import cut as cuts
from ripple.core.codec.errors import EncodingError
from ripple.core.errors import InputError
from ripple.task.repartition.carried import records_in
from ripple.task.repartition.lane import Section
from ripple.task.repartition.rows import ends_in
from ripple.world.broker import BrokerError, OffsetError, TopicPartition, make_lanes
from ripple.world.errors import StoreError
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence

    from ripple.core.cut import Cut
    from ripple.task.repartition.reading import Range
    from ripple.task.repartition.rows import Mark
    from ripple.task.repartition.topics import LaneTopic
    from ripple.world.broker import Broker, Read
    from ripple.world.ports import Clock, Executor

T = TypeVar("T")

BACK = 8  # offsets from the end in which the last mark is looked for first
READ_RECORDS = 1024
BYTES_AHEAD, LANE_BYTES_AHEAD = 32 << 20, 1 << 20  # of whole cuts, in all lanes, in one at least
WAIT_S = 1.0
OPEN_PATIENCE_S = 60.0
LOOK_INTERVAL_NS = 5_000_000_000  # between two looks for what can be removed
NOTES_MAX = 1024  # of a lane; without a checkpoint for longer, a little more stays


class BrokerReading(ReadAhead):
    """Lanes of a topic, each a partition."""

    def __init__(
        self,
        broker: Callable[[], Broker],
        topic: LaneTopic,
        lanes: Sequence[int],
        clock: Clock,
        *,
        needed: Callable[[], Awaitable[Mapping[int, Cut]]],
        executor: Executor = INLINE,
    ) -> None:
        """Read lanes of a topic, which is made if there is none.

        broker: connects; the connection is this one's own. needed: from which cut on a lane may be
        read again, absent: from the beginning. executor: decodes.
        """
        super().__init__()
        self._connect = broker
        self._of = topic
        self._places = {lane: TopicPartition(topic.topic, lane) for lane in lanes}
        self._clock = clock
        self._needed = needed
        self._executor = executor
        self._broker: Broker | None = None
        self._lanes: dict[int, _Lane] = {}
        self._looked_ns = clock.monotonic_ns()

    async def ranges(self) -> Mapping[int, Range]:
        """Return of each lane from which cut, and to which, one can read."""
        return await self._asked(self._ranges)

    async def open(self, cuts: Mapping[int, Cut | None]) -> None:
        """Go to the last mark at or before a lane's cut, and read on from there."""
        await self.reading.stop()

        async def find() -> list[int]:
            first, end = await self._bounds()
            return await asyncio.gather(
                *(
                    self._found(place, first[place], end[place], cuts.get(lane))
                    for lane, place in self._places.items()
                )
            )

        found = await self._asked(find)
        self._lanes = {
            lane: _Lane(place, offset)
            for (lane, place), offset in zip(self._places.items(), found, strict=True)
        }
        self.reading.start(self._read_on, self._error_of)

    def next(self, lane: int) -> Section | None:
        """Return the next whole cut of a lane, None while it is not there. Raises InputError."""
        found = self._lanes[lane].take()
        if found is None:
            self.reading.check()
            return None
        self.reading.took()
        return found

    async def close(self) -> None:
        """Stop reading and let go of the connection."""
        await self.reading.stop()
        broker, self._broker = self._broker, None
        if broker is not None:
            await broker.close()

    # --- where to read on ---

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the brokers' answer. Raises InputError."""
        try:
            async with asyncio.timeout(OPEN_PATIENCE_S):
                return await ask()
        except BrokerError as error:
            raise InputError(f"cannot read lanes of {self._of.topic}: {error}") from error
        except TimeoutError as error:
            raise InputError(
                f"cannot read lanes of {self._of.topic}: no answer within {OPEN_PATIENCE_S:.0f} s"
            ) from error

    async def _bounds(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        broker, places = self._open_broker(), list(self._places.values())
        await make_lanes(broker, self._of.topic, self._of.senders * self._of.receivers)
        return await broker.earliest(places), await broker.ends(places)

    async def _ranges(self) -> dict[int, Range]:
        first, end = await self._bounds()

        async def of(place: TopicPartition) -> Range:
            begin = first[place]
            next_mark = await self._next_mark(place, begin, end[place]) if begin else None
            last = await self._last_mark(place, begin, end[place])
            since = None if next_mark is None else next_mark[1].since
            return since, None if last is None else last.cut

        found = await asyncio.gather(*(of(place) for place in self._places.values()))
        return dict(zip(self._places, found, strict=True))

    async def _found(self, place: TopicPartition, first: int, end: int, cut: Cut | None) -> int:
        """Return the offset after the last mark at or before a cut."""
        low, high = first, end
        while low < high and cut is not None:
            middle = (low + high) // 2
            found = await self._next_mark(place, middle, end)
            if found is None or not cuts.is_within(found[1].cut, cut):
                high = middle
            else:
                low = found[0] + 1
        if first and low == first:
            following = await self._next_mark(place, first, end)
            since = None if following is None else following[1].since
            if following is not None and (
                cut is None or since is None or not cuts.is_within(since, cut)
            ):
                raise InputError(
                    f"{place} was read from {cuts.text(cut or {}) or 'its beginning'} on, but what "
                    f"is there begins at {cuts.text(since or {})}: its reader's checkpoints are "
                    "lost. Begin with another folder, and other outputs"
                )
        return low

    async def _next_mark(
        self, place: TopicPartition, start: int, end: int
    ) -> tuple[int, Mark] | None:
        """Return the first mark at ``start`` or after it, and its offset."""
        async with aclosing(self._committed(place, start, end)) as reads:
            async for read in reads:
                for offset, records in self._decoded(place, read):
                    for _, _, mark in ends_in(records):
                        if mark is not None:
                            return offset, mark
        return None

    async def _last_mark(self, place: TopicPartition, first: int, end: int) -> Mark | None:
        start, back = end, BACK
        while start > first:
            start, before, back = max(first, end - back), start, 8 * back
            found = None
            async with aclosing(self._committed(place, start, before)) as reads:
                async for read in reads:
                    for _, records in self._decoded(place, read):
                        found = next((mark for _, _, mark in ends_in(records)), found)
            if found is not None:
                return found
        return None

    async def _committed(
        self, place: TopicPartition, start: int, end: int
    ) -> AsyncGenerator[Read, None]:
        consumer = self._open_broker().consumer(ahead=False)
        try:
            consumer.assign({place: start})
            while start < end:
                read = (await consumer.read(records_max=READ_RECORDS, wait_s=WAIT_S)).get(place)
                if read is not None:
                    start = read.next_offset
                    yield read
        finally:
            await consumer.close()

    # --- reading on ---

    async def _read_on(self) -> None:
        """Read for ever."""
        consumer = self._open_broker().consumer()
        share = max(LANE_BYTES_AHEAD, BYTES_AHEAD // max(1, len(self._lanes)))
        asked: list[_Lane] = []
        try:
            while True:
                wanted = [lane for lane in self._lanes.values() if lane.held_bytes <= share]
                if not wanted:
                    await self.reading.room()
                    continue
                if wanted != asked:
                    consumer.assign({lane.place: lane.through for lane in wanted})
                    asked = wanted
                found = await consumer.read(records_max=READ_RECORDS, wait_s=WAIT_S)
                for place, read in found.items():
                    decoded = await self._executor.run(self._decoded, place, read)
                    self._lanes[place.partition].add(decoded, read.next_offset)
                if found:
                    self.reading.wake()
                await self._remove()
        finally:
            await consumer.close()

    def _error_of(self, error: Exception) -> Exception:
        if isinstance(error, OffsetError):
            return InputError(
                f"{error}: what this partition has to read was removed. Begin with another folder, "
                "and other outputs"
            )
        if isinstance(error, BrokerError):
            return InputError(f"cannot read lanes of {self._of.topic}: {error}")
        return error

    def _decoded(self, place: TopicPartition, read: Read) -> list[tuple[int, pa.RecordBatch]]:
        """Return the records read, with offsets. Raises InputError for records of no sender."""
        found = []
        for offset, body in zip(read.offsets.tolist(), read.records.values, strict=True):
            try:
                found.append((offset, records_in(body.as_buffer(), self._of.schema)))
            except (EncodingError, AttributeError) as error:
                raise InputError(
                    f"{place} holds at offset {offset} what no sender of this pipeline has "
                    f"written: {error}. The topic belongs to the pipeline alone; give that another "
                    "name, or remove the topic, the checkpoints and the outputs to begin anew"
                ) from error
        return found

    async def _remove(self) -> None:
        """Remove records that no checkpoint needs any more, now and then."""
        now_ns = self._clock.monotonic_ns()
        if now_ns - self._looked_ns < LOOK_INTERVAL_NS:
            return
        self._looked_ns = now_ns
        for lane in self._lanes.values():
            lane.note()
        try:
            needed = await self._needed()
            found = {
                lane.place: offset
                for number, lane in self._lanes.items()
                if number in needed and (offset := lane.passed(needed[number])) is not None
            }
            if found:
                await self._open_broker().remove_before(found)
        except (StoreError, BrokerError, OSError):
            return  # another time

    def _open_broker(self) -> Broker:
        self._broker = self._broker or self._connect()
        return self._broker


class _Lane:
    """The part of a lane that was read.

    through: the next offset to read. held_bytes: of whole cuts. ``_notes`` say, rarely, up to which
    cut all records before an offset led; the newest cut taken is in none, so that a lane is never
    without its last mark.
    """

    def __init__(self, place: TopicPartition, offset: int) -> None:
        self.place = place
        self.through = offset
        self.held_bytes = 0
        self._rows: list[pa.RecordBatch] = []
        self._whole: deque[Section] = deque()
        self._taken: deque[tuple[Cut, int]] = deque(maxlen=2)
        self._notes: deque[tuple[Cut, int]] = deque(maxlen=NOTES_MAX)

    def add(self, decoded: Sequence[tuple[int, pa.RecordBatch]], next_offset: int) -> None:
        """Take the records up to an offset."""
        self.through = next_offset
        for offset, records in decoded:
            ends = ends_in(records)
            if not ends:
                self._rows.append(records)
                continue
            ((row, _, mark),) = ends
            assert mark is not None, "void is never needed"
            assert row + 1 == records.num_rows, "a mark is the last row"
            rows = pa.concat_batches([*self._rows, records.slice(0, row)])
            self._rows = []
            self._whole.append(Section(rows, mark, offset + 1))
            self.held_bytes += rows.nbytes

    def take(self) -> Section | None:
        """Return the next whole cut."""
        if not self._whole:
            return None
        section = self._whole.popleft()
        self.held_bytes -= section.rows.nbytes
        self._taken.append((section.mark.cut, section.next_offset))
        return section

    def note(self) -> None:
        """Note where the cut before the newest one has ended."""
        if len(self._taken) == 2 and (not self._notes or self._notes[-1] != self._taken[0]):
            self._notes.append(self._taken[0])

    def passed(self, cut: Cut) -> int | None:
        """Return the offset before which no receiver at a cut needs records, None if unchanged."""
        found = None
        while self._notes and cuts.is_within(self._notes[0][0], cut):
            found = self._notes.popleft()[1]
        return found
