"""A stream as the input of a task: offset n is the message of sequence n + 1."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.formats.contract import read_batch
from ripple.connectors.inputs import Signal
from ripple.connectors.nats.envelope import EnvelopeError, value_of
from ripple.connectors.nats.session import ASK_S, FAILURES, connected, left, stream_info, told
from ripple.connectors.reading_ahead import ReadingAhead
from ripple.core.errors import InputAwayError, InputError
from ripple.core.extras import needed
from ripple.model.batch import RAW_BYTES_MAX, Rejected

with needed("nats", "a stream of NATS"):
    from nats.errors import TimeoutError as NatsTimeoutError
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy
    from nats.js.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.nats.uri import NatsPlace
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch

FETCH = 256
# A server cannot be told a limit of bytes in flight, so the limit is of messages.
FETCH_BYTES_MAX = 64 << 20
FETCH_S = 1.0
AHEAD_BYTES_MAX = 4 << 20
# For a moment; half a minute in all if no task retries, as a server restarts.
MOMENT_S = (0.1, 0.3, 1.0)
DELAYS_S = (*MOMENT_S, 2.0, 4.0, 8.0, 15.0)


_LAST = " behind "
# Servers tell times to the nanosecond, and clients round them.
SAME_US = 1000
# Of so many cuts it is known which message is before them.
KNOWN_MAX = 1000
ANEW = "Name another --checkpoint-dir and other outputs to start over with the present data"


class _Message(NamedTuple):
    """A message, and when the server got it, in microseconds of 1970."""

    offset: int
    data: bytes
    got_us: int


class _Identity(NamedTuple):
    """The identity of a stream: when it was made, and the last message of a cut.

    offset: of that message, -1 if none is known; got_us: as of a message.
    """

    created: str = ""
    offset: int = -1
    got_us: int = 0

    def __str__(self) -> str:
        last = f"{_LAST}{self.offset} at {self.got_us}" if self.offset >= 0 else ""
        return f"{self.created}{last}"

    @classmethod
    def parse(cls, text: str) -> _Identity:
        """Parse a stored identity; older runs did not store the last message."""
        created, _, last = text.partition(_LAST)
        if not last:
            return cls(created)
        offset, got_us = last.split(" at ")
        return cls(created, int(offset), int(got_us))


class NatsInputs:
    """All messages of one stream, in its order; removed messages are holes.

    Reads ahead by a consumer of its own without acknowledgements: if the connection is lost, or the
    consumer's own count has a gap, another one begins after the last message. Repetitions are
    recognized by their sequence.

    Invariants: ``_messages`` are those before ``_through`` that were not handed out yet, in order;
    there are no others before ``_through``. ``_end`` is the latest known end. The number of held
    messages is bounded, but for the requested batch, which ends at ``_wanted``.
    """

    def __init__(
        self,
        place: NatsPlace,
        values: Values,
        *,
        name: str,
        batch_rows: int,
        follow: bool = False,
        is_alone: bool = False,
    ) -> None:
        """Take the stream; nothing is asked yet. is_alone: it waits for the server by itself."""
        self._delays_s = DELAYS_S if is_alone else MOMENT_S
        self._created = ""
        self._known: dict[int, _Message] = {}  # the last messages before cuts
        self._last_read: _Message | None = None
        self._place, self._values = place, values
        self._name, self._batch_rows, self._follow = name, batch_rows, follow
        self._client: Client | None = None
        self._messages: deque[_Message] = deque()
        self._held_bytes = 0
        self._through = self._end = self._wanted = 0
        self._stop: int | None = None
        self._reading = ReadingAhead()

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self._name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end. Raises InputError."""
        first, end = _range(await self._info())
        return {self._name: first}, {self._name: end}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the stream is the same, and still has the next messages."""
        known = _Identity.parse(identities.get(self._name, ""))
        offset = cut[self._name]
        self._created = known.created
        self._check(await self._info(), offset, known.created)
        if known.offset >= 0:
            last = _Message(known.offset, b"", known.got_us)
            await self._check_last(last)
            self._known[offset] = last

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return when the stream that was read was made, and the last message before the cut."""
        found = _Identity(self._created)
        if (last := self._known.get(cut[self._name])) is not None:
            found = found._replace(offset=last.offset, got_us=last.got_us)
        return {self._name: str(found)}

    async def _check_last(self, last: _Message) -> None:
        """Raise InputError where another message is in the place of one that was read."""
        try:
            js = await self._stream()
            found = await js.get_msg(self._place.stream, last.offset + 1)
        except NotFoundError:
            return  # it was removed meanwhile, as streams do it
        except FAILURES as error:
            raise told(self._place, await left(self._client, error), InputAwayError) from error
        if found.time is not None and abs(_us(found.time) - last.got_us) > SAME_US:
            raise InputError(
                f"{self._place}: number {last.offset + 1} is another message than the one that was "
                f"read: its history has changed. {ANEW}"
            )

    def _check(self, info: StreamInfo, offset: int, known: str) -> int:
        """Return where the stream ends; raise InputError unless it goes on as it was read."""
        first, end = _range(info)
        if known and known != str(info.created):
            raise InputError(
                f"{self._place} was made at {info.created}, and what was read up to {offset} was "
                f"of a stream made at {known}: it is another one. {ANEW}"
            )
        if offset > end:
            raise InputError(
                f"{self._place} ends at {end}, and it was read up to {offset}: it has lost what it "
                f"had. {ANEW}"
            )
        if offset < first:
            raise InputError(
                f"{self._place} begins at {first}, and it was read up to {offset}: messages "
                f"between were removed by the stream's limits. {ANEW}"
            )
        return end

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; see Inputs."""
        await self._reading.stop()
        self._batch_rows = rows
        self._stop = None if stop is None else stop[self._name]
        self._messages.clear()
        self._held_bytes = 0
        self._last_read = self._known.get(cut[self._name])
        self._through = self._wanted = cut[self._name]
        info = await self._info()
        self._end = self._check(info, self._through, self._created)
        self._created = str(info.created)
        self._reading.start(self._read_on, lambda error: told(self._place, error, InputAwayError))

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch; see Inputs."""
        at, last = cut[self._name], self._last()
        if last is not None and at >= last:
            return Signal.ENDED
        end = (at // self._batch_rows + 1) * self._batch_rows
        if last is not None:
            end = min(end, last)
        has_more = self._through < self._end and not self._reading.has_failed
        if self._through < end and (has_more or self._through <= at):
            self._reading.check()
            self._wanted = end
            self._reading.took()
            return Signal.WAITING
        return self._name, self._batch(min(end, self._through))

    def _last(self) -> int | None:
        """Return where reading ends, None if it does not."""
        if self._stop is not None:
            return self._stop
        return None if self._follow else self._end

    def _batch(self, end: int) -> Batch:
        offsets, values, refused = [], [], []
        while self._messages and self._messages[0].offset < end:
            message = self._messages.popleft()
            offset, data = message.offset, message.data
            self._held_bytes -= len(data)
            self._known[end] = message._replace(data=b"")
            try:
                value = value_of(data)
            except EnvelopeError as error:
                refused.append(Rejected(offset, None, str(error), data[:RAW_BYTES_MAX]))
                continue
            offsets.append(offset)
            values.append(value)
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]
        self._reading.took()
        return read_batch(offsets, values, refused, end, self._values)

    async def more(self) -> None:
        """Wait until more was read."""
        await self._reading.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._reading.wake()

    async def sync(self) -> None:
        """Do nothing: the server keeps what it has acknowledged."""

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await self._reading.stop()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _info(self) -> StreamInfo:
        try:
            info = await stream_info(await self._stream(), self._place)
        except FAILURES as error:
            raise told(self._place, await left(self._client, error), InputAwayError) from error
        if info is None:
            anew = f" any more: its records are lost. {ANEW}" if self._created else ""
            raise InputError(f"{self._place}: there is no such stream{anew}")
        check_kept(self._place, info)
        return info

    async def _stream(self) -> JetStreamContext:
        if self._client is None or self._client.is_closed:
            self._client = await connected(self._place, InputAwayError)
        return self._client.jetstream(timeout=ASK_S)

    async def _read_on(self) -> None:
        """Read ahead, for ever; a server that is away is asked again, not for long."""
        delays = iter(self._delays_s)
        while True:
            before = self._through
            try:
                await self._read()
            except (*FAILURES, InputAwayError) as error:
                why = await left(self._client, error)
                if self._through > before:
                    delays = iter(self._delays_s)
                delay_s = next(delays, None)
                if delay_s is None and why is error:
                    raise
                if delay_s is None:
                    raise told(self._place, why, InputAwayError) from error
                await asyncio.sleep(delay_s)

    async def _read(self) -> None:
        """Read by one consumer until it has a gap. Raises what went wrong."""
        js = await self._stream()
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._through + 1,
            ack_policy=AckPolicy.NONE,
            inactive_threshold=60.0,
            mem_storage=True,
        )
        consumer = await js.pull_subscribe("", stream=self._place.stream, config=config)
        count = 0
        assert self._client is not None
        fetch = min(FETCH, max(1, FETCH_BYTES_MAX // self._client.max_payload))
        try:
            # A stream that was made anew takes its consumers with it: this one is of that stream.
            self._check(await self._info(), self._through, self._created)
            if self._last_read is not None:
                await self._check_last(self._last_read)
            while True:
                if self._held_bytes > AHEAD_BYTES_MAX and self._through >= self._wanted:
                    await self._reading.room()
                    continue
                # Of what is not there yet the server would wait for all.
                count_there = min(fetch, max(1, self._end - self._through))
                try:
                    found = await consumer.fetch(count_there, timeout=FETCH_S)
                except NatsTimeoutError:
                    await self._look(consumer, count)
                    continue
                is_checked = False
                for message in found:
                    count += 1
                    if message.metadata.sequence.consumer != count:
                        return  # one was lost on its way: begin after the held ones
                    if message.metadata.sequence.stream - 1 > self._through and not is_checked:
                        # Removed one by one, or has the stream overtaken its reader?
                        self._check(await self._info(), self._through, self._created)
                        is_checked = True
                    self._take(message)
                if self._through >= self._end:
                    await self._look(consumer, count)
                self._reading.wake()
        finally:
            with suppress(Exception):
                await consumer.unsubscribe()

    def _take(self, message: Msg) -> None:
        offset = message.metadata.sequence.stream - 1
        if offset >= self._through:
            taken = _Message(offset, message.data, _us(message.metadata.timestamp))
            self._messages.append(taken)
            self._last_read = taken._replace(data=b"")
            self._held_bytes += len(message.data)
            self._through = offset + 1

    async def _look(self, consumer: JetStreamContext.PullSubscription, count: int) -> None:
        """See how far the stream is, and whether there is a hole at its end."""
        end = self._check(await self._info(), self._through, self._created)
        state = await consumer.consumer_info()
        delivered = state.delivered.consumer_seq if state.delivered is not None else 0
        if not state.num_pending and delivered == count:
            self._through = max(self._through, end)
        if self._follow or self._stop is not None:
            self._end = max(self._end, end)
        self._reading.wake()


def _us(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def check_kept(place: NatsPlace, info: StreamInfo) -> None:
    """Raise InputError for a stream that removes acknowledged messages."""
    retention = RetentionPolicy(info.config.retention or RetentionPolicy.LIMITS)
    if retention is not RetentionPolicy.LIMITS:
        raise InputError(
            f"{place}: its retention is {retention.value}, so messages that a "
            "consumer has read are removed, and no run could resume: read a stream of retention "
            "limits that has this one among its sources, or another one"
        )


def _range(info: StreamInfo) -> tuple[int, int]:
    """Return the offsets where a stream begins and ends."""
    first, last = info.state.first_seq, info.state.last_seq
    return max(first - 1, 0) if info.state.messages else last, last
