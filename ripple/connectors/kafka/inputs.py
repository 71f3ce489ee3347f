"""Partitions of a topic as the inputs of a task, read ahead over the broker port."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ripple.connectors.cutting import recut
from ripple.connectors.formats.contract import AT_ONCE_BYTES, batch_of, before
from ripple.connectors.formats.table_changes import TableValues
from ripple.connectors.inputs import Signal, in_turn
from ripple.connectors.kafka.errors import DamagedError, OldFormatError
from ripple.connectors.kafka.originals import original_of
from ripple.connectors.reading_ahead import ReadAhead
from ripple.core.errors import InputAwayError, InputError
from ripple.core.tracing import FIELD, some
from ripple.world.broker import (
    AnotherTopicError,
    BrokerError,
    Consumer,
    NoTopicError,
    OffsetError,
    TopicPartition,
)

if TYPE_CHECKING:
    from ripple.connectors.formats.contract import Values
    from ripple.connectors.inputs import Original
    from ripple.connectors.kafka.growth import Growth
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker
    from ripple.world.broker import Read

READ_ROWS = 1 << 16  # of all partitions, at once
ROWS_AHEAD = 1 << 17  # of all partitions, for the next caller
BYTES_AHEAD = 32 << 20
WAIT_S = 1.0
ENDS_S = 0.2  # between two questions where the end is
AWAY_S = 60.0  # after which a run without --follow gives up
AWAY_FOLLOWED_S = 5.0  # after which a run with --follow reports the wait
SAMPLE_S = 10.0


class ReaderConsumer(Consumer, Protocol):
    """A consumer with the answers of its brokers.

    stable_ends: up to where records are there, by each fetch. losses: how often no answer came: the
    next broker may lack the records read.
    """

    stable_ends: dict[TopicPartition, int]
    losses: int

    @property
    def away_s(self) -> float:
        """For how long no broker has answered."""
        ...


class Reader(Protocol):
    """The part of a broker's interface that reads it."""

    async def open(self) -> None:
        """Connect. Raises BrokerError."""
        ...

    async def close(self) -> None:
        """Let go of the connections; closing twice is allowed."""
        ...

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that may still be there; see Broker."""
        ...

    async def ends(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where readers see everything; see Broker."""
        ...

    async def since(
        self, places: Sequence[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offset that was written at a time or later, -1 for none."""
        ...

    def topic_id(self, topic: str) -> str:
        """Return the lasting id of a topic, "" if that is unknown."""
        ...

    def consumer(self, *, ahead: bool = True) -> ReaderConsumer:
        """Return a reader; see Broker."""
        ...


class KafkaInputs(ReadAhead):
    """Partitions of one topic, by their names in the engine.

    With ``follow`` more may come at the end of the topic, else it ends at its end at opening.
    Up to the known end, batches are full, and the task waits for the next input: so it goes
    through the same cuts as the one before, however slowly brokers answer.

    The reader survives an ``open`` that continues at its position, and then nothing is asked: a
    request waits for the fetch under way, as that does for records.
    """

    def __init__(
        self,
        reader: Reader,
        partitions: Mapping[str, TopicPartition],
        values: Values,
        batch_rows: int,
        *,
        follow: bool = False,
        keyed_by: tuple[str, ...] | None = None,
        growth: Growth | None = None,
    ) -> None:
        """keyed_by: the fields by which records are partitioned, None: unknown.

        growth: detects partitions that are added while it reads.
        """
        super().__init__()
        self.keyed_by = keyed_by if len(partitions) > 1 else None
        self._reader = reader
        self._partitions = partitions
        self._values = values
        self._batch_rows = batch_rows
        self._follow = follow
        self._rank = {name: rank for rank, name in enumerate(partitions)}
        self._ahead: dict[str, _Ahead] = {}
        self._seen: dict[str, tuple[int, str]] = {}
        self._is_open = False
        self._consumer: ReaderConsumer | None = None
        self._is_traced = False
        self._growth = growth

    def trace(self) -> None:
        """Hold the contexts of records from the next ``open`` on."""
        self._is_traced = True

    def originals(self, name: str, offsets: Sequence[int]) -> dict[int, Original]:
        """Return records of the batch that was handed out last, whole, as the topic has them."""
        return self._ahead[name].originals(offsets)

    def contexts(self, name: str, next_offset: int) -> list[str]:
        """Return those of the records before an offset, each once, and forget them."""
        return self._ahead[name].contexts(next_offset)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        return tuple(self._partitions)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end."""
        places = list(self._partitions.values())
        try:
            await self._connect()
            first = await self._reader.earliest(places)
            end = await self._reader.ends(places)
        except BrokerError as error:
            raise _error_of(error) from error
        by_name = self._partitions.items()
        return (
            {name: first[place] for name, place in by_name},
            {name: end[place] for name, place in by_name},
        )

    async def since(self, time_ms: int) -> Cut:
        """Return the offsets from which on records were written at a time or later.

        By the timestamps that brokers keep: the ends where there are none, yet.
        """
        _, end = await self.bounds()
        try:
            found = await self._reader.since(list(self._partitions.values()), time_ms)
        except BrokerError as error:
            raise _error_of(error) from error
        asked = {name: found[place] for name, place in self._partitions.items()}
        return {name: end[name] if at < 0 else at for name, at in asked.items()}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the topic is the same and reaches ``cut``; see Inputs."""
        if not any(identities.values()) and self._has_seen(cut):
            return
        first, end = await self.bounds()
        for name, offset in cut.items():
            bounds = first[name], end[name]
            await self._check_place(name, offset, identities.get(name, ""), bounds)

    async def _check_place(
        self, name: str, offset: int, identity: str, bounds: tuple[int, int]
    ) -> None:
        """Raise InputError unless a partition is the same up to an offset."""
        place, (first, end) = self._partitions[name], bounds
        topic_id, was_id = self._topic_id(place), identity.partition(" ")[2]
        if was_id and topic_id and was_id != topic_id:
            raise _another(
                f"{place} is of a topic with the id {topic_id}, and the run has read "
                f"one with {was_id}"
            )
        if offset > end:
            raise _another(f"{place} ends at offset {end}, and the run has read up to {offset}")
        if offset < first:
            raise _removed(place, offset, first)
        await self._check_identity(name, offset, identity, first)

    async def _check_again(self) -> None:
        """Raise InputError unless the topic is the same after an outage."""
        first, end = await self.bounds()
        for name, ahead in self._ahead.items():
            identity = self._identity(name, ahead.through)
            await self._check_place(name, ahead.through, identity, (first[name], end[name]))

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input the last record before ``cut``, when it was written, the topic's id."""
        return {name: self._identity(name, offset) for name, offset in cut.items()}

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` goes on from there, ``rows`` at a time, up to ``stop``."""
        if (self._follow or stop is not None) and self._is_at(cut):
            for name, ahead in self._ahead.items():
                end_known = self._end_of(ahead) if stop is None else stop[name]
                ahead.go_on(rows, end_known, grows=self._follow and stop is None)
            self.reading.took()
            return
        await self.reading.stop()
        _, end = await self.bounds()
        self._ahead = {
            name: _Ahead(
                self._partitions[name],
                cut[name],
                rows,
                end[name] if stop is None else stop[name],
                grows=self._follow and stop is None,
                share=len(self._partitions),
            )
            for name in self._partitions
        }
        self.reading.start(self._read_on, _read_error_of)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the batch after ``cut`` and its input, or the reason why there is none."""
        for name in in_turn(cut, self._batch_rows, self._rank):
            ahead = self._ahead[name]
            entry = ahead.next()
            if entry is not None:
                self.reading.took()
                return name, entry
            if cut[name] < ahead.end:
                return self._waiting()
        is_followed = any(ahead.grows for ahead in self._ahead.values())
        return self._waiting() if is_followed else Signal.ENDED

    async def close(self) -> None:
        """Stop reading and let go of the connections."""
        await self.reading.stop()
        if self._is_open:
            self._is_open = False
            await self._reader.close()

    def _is_at(self, cut: Cut) -> bool:
        """Whether the reader continues at a cut."""
        return self.reading.is_at_work and all(
            ahead.at == cut[name] for name, ahead in self._ahead.items()
        )

    def _has_seen(self, cut: Cut) -> bool:
        """Whether all up to a cut is there, as far as it was not handed out already."""
        return self.reading.is_at_work and all(
            ahead.at <= cut[name] <= self._end_of(ahead) for name, ahead in self._ahead.items()
        )

    def _end_of(self, ahead: _Ahead) -> int:
        """Return up to where records are there, as brokers have said without being asked."""
        known = {} if self._consumer is None else self._consumer.stable_ends
        return max(ahead.through, known.get(ahead.place, 0))

    def _waiting(self) -> Signal:
        self.reading.check()
        return Signal.WAITING

    async def _connect(self) -> None:
        if not self._is_open:
            await self._reader.open()
            self._is_open = True

    async def _read_on(self) -> None:
        """Read ahead, for ever."""
        consumer = self._consumer = self._reader.consumer()
        watch = None if self._growth is None else asyncio.create_task(self._growth.watch())
        try:
            await self._read(consumer)
        finally:
            if watch is not None:
                watch.cancel()
            await consumer.close()

    async def _read(self, consumer: ReaderConsumer) -> None:
        by_place = {ahead.place: ahead for ahead in self._ahead.values()}
        asked: list[TopicPartition] = []
        losses = 0
        loop = asyncio.get_running_loop()
        ends_at = 0.0
        while True:
            wanted = [place for place, ahead in by_place.items() if ahead.has_room]
            if not wanted:
                await self.reading.room()
                continue
            if wanted != asked:
                consumer.assign({place: by_place[place].through for place in wanted})
                asked = wanted
            found = await consumer.read(records_max=READ_ROWS, wait_s=WAIT_S)
            if consumer.losses != losses:
                losses = consumer.losses
                await self._check_again()
            for place, read in found.items():
                by_place[place].add(await self._batch_of(place, read), read)
                if self._is_traced and read.records.headers is not None:
                    by_place[place].keep(read)
            if found:  # before it is asked where the end is, an answer behind that to a fetch
                self.reading.wake()
            past = [place for place, each in by_place.items() if each.grows and each.is_past]
            if past and loop.time() >= ends_at:
                with suppress(BrokerError):  # which reading meets as well
                    for place, end in (await self._reader.ends(past)).items():
                        by_place[place].end = max(end, by_place[place].end)
                ends_at = loop.time() + ENDS_S
            check_there(consumer, AWAY_FOLLOWED_S if self._follow else AWAY_S)

    async def _batch_of(self, place: TopicPartition, read: Read) -> Batch:
        made = partial(_decoded, read, self._values, place)
        if self._values.at_once and read.records.values.nbytes <= AT_ONCE_BYTES:
            return made()
        return await asyncio.to_thread(made)

    def _identity(self, name: str, offset: int) -> str:
        ahead = self._ahead.get(name)
        found = "" if ahead is None else ahead.identity(offset)
        if found:
            self._seen[name] = (offset, found)
        at, seen = self._seen.get(name, (-1, ""))
        is_known = at == offset or (ahead is not None and ahead.is_unread(offset))
        read, topic_id = seen.partition(" ")[0], self._topic_id(self._partitions[name])
        return f"{read if is_known else ''} {topic_id}".rstrip()

    def _topic_id(self, place: TopicPartition) -> str:
        return self._reader.topic_id(place.topic)

    async def _check_identity(self, name: str, cut: int, identity: str, first: int) -> None:
        """Compare the last record before the cut with its former identity, if it is still there."""
        at, _, written_ms = identity.partition(" ")[0].partition("@")
        if not written_ms or not at.isdigit() or int(at) < first:
            return
        place, offset = self._partitions[name], int(at)
        consumer = self._reader.consumer(ahead=False)
        try:
            consumer.assign({place: offset})
            read = (await consumer.read(records_max=1, wait_s=SAMPLE_S)).get(place)
        except BrokerError as error:
            raise _error_of(error) from error
        finally:
            await consumer.close()
        if read is None or not len(read.offsets) or int(read.offsets[0]) != offset:
            return  # compacted, or the broker is too slow to say
        found_ms = int(read.records.timestamps_ms[0])
        if str(found_ms) != written_ms:
            raise _another(
                f"{place}: the record at offset {offset} is of {found_ms} ms, and what the run has "
                f"read there was of {written_ms} ms"
            )
        self._seen[name] = (cut, identity)


def check_there(consumer: ReaderConsumer, away_s_max: float = AWAY_S) -> None:
    """Raise BrokerError where brokers have been away for longer than is waited for here."""
    if consumer.away_s > away_s_max:
        raise BrokerError(f"no broker has answered for {int(consumer.away_s)} s", done=False)


_WAY_OUT = (
    "The topic's retention has removed unread records, or it is another topic of this name: "
    "start over in another --checkpoint-dir, with what is left, and keep records for longer than a "
    "run may stand still"
)


def _error_of(error: Exception) -> Exception:
    if isinstance(error, OffsetError):
        return InputError(f"{error}. {_WAY_OUT}")
    if isinstance(error, AnotherTopicError):
        return _another(str(error))
    if isinstance(error, NoTopicError | OldFormatError):
        return InputError(str(error))
    if isinstance(error, DamagedError):  # on its way, or where it lies
        return InputAwayError(f"{error}. Another replica may have it whole: let that one lead")
    return InputAwayError(str(error)) if isinstance(error, BrokerError) else error


def _decoded(read: Read, values: Values, place: TopicPartition) -> Batch:
    if isinstance(values, TableValues):
        return values.changes(read, str(place))
    return batch_of(read, values)


def _read_error_of(error: Exception) -> Exception:
    """Return the cleanup of a started reader."""
    if isinstance(error, NoTopicError):
        return InputError(
            f"{error} any more, and its unread records are lost: start over with "
            "another topic, in another --checkpoint-dir"
        )
    return _error_of(error)


def _another(how: str) -> InputError:
    return InputError(
        f"{how}: it is another topic of this name, or it was truncated. Name the original, "
        "or start over in another --checkpoint-dir"
    )


def _removed(place: TopicPartition, offset: int, first: int) -> InputError:
    return InputError(
        f"{place} begins at offset {first}, and the run has read up to {offset}. {_WAY_OUT}"
    )


class _Ahead:
    """The records of one partition that were read, and are not handed out yet.

    at: the next offset to hand out. through: the next one to read. end: the known end; it may
    grow, else nothing after it is handed out.
    """

    def __init__(
        self, place: TopicPartition, offset: int, rows: int, end: int, *, grows: bool, share: int
    ) -> None:
        self.place = place
        self.at = self.through = offset
        self._from = offset  # of the batch that was handed out last
        self._share = share
        self._blocks: list[Batch] = []
        self._entries: deque[Batch] = deque()
        self._reads: deque[Read] = deque()
        self._contexts: deque[tuple[int, str]] = deque()
        self._rows_held = self._bytes_held = 0
        self._bytes_max = BYTES_AHEAD // share
        self.go_on(rows, end, grows=grows)

    def go_on(self, rows: int, end: int, *, grows: bool) -> None:
        """Hand out, from an offset, so many rows at a time, up to an end; recut waiting records."""
        self.end = end
        self.grows = grows
        self._rows = rows
        self._rows_max = max(2 * rows, ROWS_AHEAD // self._share)
        self._blocks[:0] = self._entries
        self._entries.clear()
        while self._contexts and self._contexts[0][0] < self.at:
            self._contexts.popleft()

    @property
    def is_past(self) -> bool:
        """Whether all known records were read."""
        return self.through >= self.end

    @property
    def has_room(self) -> bool:
        """Whether to read on: also beyond the bound in bytes, for one whole batch."""
        if self.is_past and not self.grows:
            return False
        if self._rows_held >= self._rows_max:
            return False
        return self._bytes_held < self._bytes_max or not (
            self._entries or self._boundary() > self.at
        )

    def add(self, batch: Batch, read: Read) -> None:
        """Take the next records."""
        self.through = batch.next_offset
        self._blocks.append(batch)
        self._rows_held += batch.span
        self._bytes_held += batch.records.nbytes
        if len(read.offsets):
            self._reads.append(read)
            self._bytes_held += _bytes_of(read)

    def keep(self, read: Read) -> None:
        """Hold the contexts of records, as far as they are traced."""
        assert read.records.headers is not None
        for offset, headers in zip(read.offsets.tolist(), read.records.headers, strict=True):
            for name, value in headers:
                if name == FIELD:
                    self._contexts.append((offset, value.decode("ascii", "replace")))

    def contexts(self, next_offset: int) -> list[str]:
        """Return the contexts of records before an offset, and forget them."""
        found = []
        while self._contexts and self._contexts[0][0] < next_offset:
            found.append(self._contexts.popleft()[1])
        return some(found)

    def next(self) -> Batch | None:
        """Return the next batch: a whole one, or a short one where nothing more is there."""
        if not self._entries and self._blocks:
            self._cut()
        if not self._entries:
            return None
        entry = self._entries.popleft()
        self._from, self.at = self.at, entry.next_offset
        self._rows_held -= entry.span
        self._bytes_held -= entry.records.nbytes
        while len(self._reads) > 1 and self._reads[1].offsets[0] <= self._from:
            self._bytes_held -= _bytes_of(self._reads.popleft())
        return entry

    def originals(self, offsets: Sequence[int]) -> dict[int, Original]:
        """Return records of the batch that was handed out last."""
        found: dict[int, Original] = {}
        for read in self._reads:
            rows = np.searchsorted(read.offsets, offsets)
            for row, offset in zip(rows.tolist(), offsets, strict=True):
                if row < len(read.offsets) and read.offsets[row] == offset:
                    found[offset] = original_of(self.place, read.records, row)
        return found

    def identity(self, offset: int) -> str:
        """Return the last record before ``offset``, if it was read here."""
        for read in reversed(self._reads):
            row = int(np.searchsorted(read.offsets, offset)) - 1
            if row >= 0:
                return f"{read.offsets[row]}@{read.records.timestamps_ms[row]}"
        return ""

    def is_unread(self, offset: int) -> bool:
        """Whether nothing was read here before ``offset``."""
        return not self._reads or bool(self._reads[0].offsets[0] >= offset)

    def _boundary(self) -> int:
        if self.is_past:
            return self.through if self.grows else self.end
        return self.through // self._rows * self._rows

    def _cut(self) -> None:
        """Cut the records up to the last multiple of a batch's rows, or to the end."""
        until = self._boundary()
        if until <= self.at:
            return
        whole, rest = [], []
        for block in self._blocks:
            if block.next_offset <= until:
                whole.append(block)
            elif block.first_offset < until:
                head, tail = block.split_at(until)
                whole.append(head)
                rest.append(tail)
            else:
                if not (rest or self.grows) and until == self.end:
                    whole.append(before(block, until))  # a hole lies there
                rest.append(block)
        self._blocks = rest
        self._entries.extend(recut(whole, self._rows))
        self._bytes_held = sum(each.records.nbytes for each in (*rest, *self._entries))
        self._bytes_held += sum(map(_bytes_of, self._reads))


def _bytes_of(read: Read) -> int:
    return int(read.records.keys.nbytes + read.records.values.nbytes)
