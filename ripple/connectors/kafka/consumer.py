"""Reads partitions from their leaders, ahead of the caller, in columns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ripple.connectors.formats.contract import AT_ONCE_BYTES
from ripple.connectors.kafka.client import FIRST_PAUSE_S, LONGEST_PAUSE_S
from ripple.connectors.kafka.error_mapping import OUT_OF_RANGE, is_passing, refusal, words
from ripple.connectors.kafka.errors import DamagedError
from ripple.connectors.kafka.record_batches import decoded, next_offset
from ripple.core.extras import needed
from ripple.world.broker import (
    AnotherTopicError,
    BrokerError,
    NoTopicError,
    OffsetError,
    Read,
    Records,
    TopicPartition,
)
from ripple.world.pauses import doubling
from ripple.world.together import called_off

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors

if TYPE_CHECKING:
    from ripple.connectors.kafka.client import KafkaClient
    from ripple.connectors.kafka.private import Fetched

WAIT_MS = 500  # that a broker waits for records, asked for all that it has to say
WAIT_FOR_SOME_MS = 20  # the same, while other partitions are not asked for
FETCH_BYTES = 8 << 20
# Of a partition: larger buffers take new memory each time, which costs more than it saves.
PARTITION_BYTES = 2 << 20
PIECE_BYTES = 2 << 20
FETCHES_AHEAD = 2  # of a partition: one that is decoded, and the next
MISSED_MAX = 5  # times that a topic is not there, before it is not


class KafkaConsumer:
    """Committed records of some partitions; see Consumer of the broker port.

    Without a caller it holds two fetches of each partition, and a decoded piece. A broker that is
    unavailable is asked again and again: ``away_s`` is the time since then, and ``warn`` is called
    once. headers: whether records come with theirs. refuses: whether an unreadable batch is
    rejected, record by record, or raised. An assignment that leaves a partition out, and later
    takes it up at the same offset, finds the prefetched records again. Not ``ahead``: a request is
    under way only while ``read`` waits, so none stays at the broker, where it would delay later
    requests over the connection.
    """

    def __init__(
        self,
        client: KafkaClient,
        *,
        headers: bool = False,
        refuses: bool = False,
        ahead: bool = True,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.stable_ends: dict[TopicPartition, int] = {}
        self.losses = 0
        """How often no answer came: who answers next may not have what was read."""
        self._client = client
        self._headers, self._refuses = headers, refuses
        self._ahead = self._is_asked = ahead
        self._warn = warn
        self._slots: dict[TopicPartition, _Slot] = {}
        self._assigned: tuple[TopicPartition, ...] = ()
        self._changed = asyncio.Event()
        self._busy: dict[object, asyncio.Task[None]] = {}
        self._pauses_s = _pauses_s()
        self._away_since: float | None = None
        self._missed = 0
        self._failure: BaseException | None = None

    @property
    def away_s(self) -> float:
        """For how long no broker has answered."""
        since = self._away_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets, and no others any more."""
        for place, offset in positions.items():
            slot = self._slots.get(place)
            if slot is None or slot.position != offset:
                self._slots[place] = _Slot(offset)
        self._assigned = tuple(positions)
        self._changed.set()

    async def read(self, *, records_max: int, wait_s: float) -> dict[TopicPartition, Read]:
        """Return the next records of some of the partitions; see Consumer."""
        until = asyncio.get_running_loop().time() + wait_s
        while True:
            self._changed.clear()
            found = self._taken(records_max)
            if not found:
                self._raise_first()
            self._is_asked = self._ahead or not found
            self._go_on()
            if found or asyncio.get_running_loop().time() >= until:
                return found
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return {}

    async def close(self) -> None:
        """Read no more."""
        self._assigned = ()
        self._slots.clear()
        await called_off(*self._busy.values())

    def _taken(self, records_max: int) -> dict[TopicPartition, Read]:
        """Return decoded records, beginning with another partition each time."""
        found: dict[TopicPartition, Read] = {}
        places, self._assigned = self._assigned, self._assigned[1:] + self._assigned[:1]
        for place in places:
            slot = self._slots[place]
            if slot.ready and records_max > 0:
                found[place] = slot.take(records_max)
                records_max -= len(found[place].offsets)
        return found

    def _raise_first(self) -> None:
        if self._failure is not None:
            raise self._failure
        for place in self._assigned:
            slot = self._slots[place]
            if slot.error is not None and slot.is_empty:
                self._slots[place] = _Slot(slot.position)  # to be tried again by the next read
                raise slot.error

    def _go_on(self) -> None:
        """Begin all requests that can be sent now, each once."""
        led: dict[int, list[TopicPartition]] = {}
        is_lost = False
        for place in self._assigned:
            slot = self._slots[place]
            if slot.fetched and not slot.ready:
                self._begin(slot, lambda slot=slot: self._decode(slot))  # type: ignore[misc]
            node = self._client.leader(place)
            if node is None:
                is_lost = True
            else:
                led.setdefault(node, []).append(place)
        for node, places in led.items():
            wanted = {
                place: slot.fetch_at
                for place in places
                if (slot := self._slots[place]).error is None and self._is_wanting(slot)
            }
            if wanted:
                wait_ms = WAIT_MS if len(wanted) == len(places) else WAIT_FOR_SOME_MS
                self._begin(
                    node,
                    lambda node=node, wanted=wanted, wait_ms=wait_ms: self._fetch(  # type: ignore[misc]
                        node, wanted, wait_ms
                    ),
                )
        if is_lost:
            self._begin("leaders", self._find_leaders)

    def _is_wanting(self, slot: _Slot) -> bool:
        if self._ahead:
            return len(slot.fetched) < FETCHES_AHEAD
        return self._is_asked and slot.is_empty

    def _begin(self, what: object, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if what in self._busy:
            return

        def done(task: asyncio.Task[None]) -> None:
            del self._busy[what]
            self._changed.set()
            if not task.cancelled():
                self._failure = self._failure or task.exception()
                if self._failure is None:
                    self._go_on()

        task = asyncio.get_running_loop().create_task(work())
        self._busy[what] = task
        task.add_done_callback(done)

    async def _fetch(self, node: int, wanted: Mapping[TopicPartition, int], wait_ms: int) -> None:
        slots = {place: self._slots[place] for place in wanted}
        try:
            answers = await self._client.fetch(
                node,
                wanted,
                wait_ms=wait_ms,
                bytes_max=FETCH_BYTES,
                partition_bytes_max=PARTITION_BYTES,
            )
        except (errors.KafkaError, BrokerError) as error:
            await self._wait_for_brokers(error)
            return
        self._is_there()
        is_stale = False
        for answer in answers:
            place = TopicPartition(answer.topic, answer.partition)
            slot = slots.get(place)
            if slot is not None and slot is self._slots.get(place):
                is_stale |= is_passing(answer.error) if answer.error else False
                await self._note(place, slot, answer)
        if is_stale:
            await self._find_leaders()

    async def _note(self, place: TopicPartition, slot: _Slot, answer: Fetched) -> None:
        """Take the records of a partition, or the reason for none."""
        if answer.error == OUT_OF_RANGE:
            slot.error = await self._out_of_range(place, slot.fetch_at)
        elif answer.error and not is_passing(answer.error):
            slot.error = refusal(answer.error, f"cannot read {place}")
        if answer.error:
            return
        self.stable_ends[place] = answer.stable_end
        try:
            behind = next_offset(answer.data, slot.fetch_at)
        except DamagedError as error:
            slot.error = _of(place, error)
            return
        if behind > slot.fetch_at:
            pieces = decoded(
                answer.data,
                slot.fetch_at,
                answer.aborted,
                headers=self._headers,
                refuses=self._refuses,
                piece_bytes=PIECE_BYTES,
            )
            slot.fetch_at = behind
            if len(answer.data) > AT_ONCE_BYTES or not slot.is_empty:
                slot.fetched.append(_named(place, pieces))
                return
            try:
                slot.ready.extend(_named(place, pieces))
            except BrokerError as error:
                slot.error = error

    async def _out_of_range(self, place: TopicPartition, offset: int) -> BrokerError:
        try:
            first = (await self._client.earliest([place]))[place]
            end = (await self._client.ends([place], committed=False))[place]
        except BrokerError as error:
            return error
        return OffsetError(place, offset, first, end)

    async def _decode(self, slot: _Slot) -> None:
        pieces = slot.fetched[0]  # one at a time: the slot is busy until this has ended
        try:
            piece = await asyncio.to_thread(next, pieces, None)
        except BrokerError as error:
            slot.error, piece = error, None
        if piece is not None:
            slot.ready.append(piece)
        else:
            slot.fetched.popleft()

    async def _find_leaders(self) -> None:
        try:
            await self._client.learn(self._assigned)
        except NoTopicError as error:
            self._missed += 1
            if self._missed >= MISSED_MAX:
                for place in self._assigned:
                    self._slots[place].error = error
                    self._missed = 0
        except AnotherTopicError:
            raise
        except (errors.KafkaError, BrokerError) as error:
            await self._wait_for_brokers(error)
            return
        else:
            self._missed = 0
        await self._pause()

    async def _wait_for_brokers(self, error: Exception) -> None:
        """Note that a broker did not answer, and look up the leaders after a while."""
        if self._away_since is None:
            self._away_since = asyncio.get_running_loop().time()
            self._warn(f"Kafka at {self._client.brokers} does not answer: {words(error)}")
        self.losses += 1
        await self._pause()
        try:
            await self._client.learn(self._assigned)
        except AnotherTopicError:
            raise
        except (errors.KafkaError, BrokerError):
            return

    def _is_there(self) -> None:
        if self._away_since is not None:
            self._warn(f"Kafka at {self._client.brokers} answers again")
        self._away_since, self._pauses_s = None, _pauses_s()

    async def _pause(self) -> None:
        await asyncio.sleep(next(self._pauses_s))


def _pauses_s() -> Iterator[float]:
    return doubling(FIRST_PAUSE_S, LONGEST_PAUSE_S)


class _Slot:
    """The state of a partition that is read from an offset on.

    position: of the next record to hand out. fetch_at: the next offset to fetch. fetched: not yet
    decoded. ready: decoded. error: the reason why no more follow.
    """

    def __init__(self, position: int) -> None:
        self.position = self.fetch_at = position
        self.fetched: deque[Iterator[Read]] = deque()
        self.ready: deque[Read] = deque()
        self.error: BrokerError | None = None

    @property
    def is_empty(self) -> bool:
        return not self.ready and not self.fetched

    def take(self, records_max: int) -> Read:
        read = self.ready.popleft()
        if len(read.offsets) > records_max:
            read, rest = _divided(read, records_max)
            self.ready.appendleft(rest)
        self.position = read.next_offset
        return read


def _divided(read: Read, rows: int) -> tuple[Read, Read]:
    offsets, records = read.offsets, read.records
    return (
        Read(offsets[:rows], _sliced(records, 0, rows), int(offsets[rows - 1]) + 1),
        Read(offsets[rows:], _sliced(records, rows, len(offsets)), read.next_offset),
    )


def _sliced(records: Records, first: int, end: int) -> Records:
    return Records(
        records.keys.slice(first, end - first),
        records.values.slice(first, end - first),
        records.timestamps_ms[first:end],
        None if records.headers is None else records.headers[first:end],
    )


def _named(place: TopicPartition, pieces: Iterator[Read]) -> Iterator[Read]:
    try:
        yield from pieces
    except DamagedError as error:
        raise _of(place, error) from error


def _of(place: TopicPartition, error: DamagedError) -> DamagedError:
    return DamagedError(f"{place}: {error}")
