"""A stream as the input of a task: offset n is the message of sequence n + 1."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.buffered_input import BufferedInput
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.nats.envelope import EnvelopeError, value_of
from ripple.connectors.nats.session import ASK_S, FAILURES, connected, error_of, left, stream_info
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

    from ripple.connectors.connector import Reading
    from ripple.connectors.nats.uri import NatsUri
    from ripple.core.cut import Cut

FETCH = 256
# A server cannot be told a limit of bytes in flight, so the limit is of messages.
FETCH_BYTES_MAX = 64 << 20
FETCH_S = 1.0

_LAST = " behind "
# Servers tell times to the nanosecond, and clients round them.
SAME_US = 1000
ANEW = "Name another --checkpoint-dir and other outputs to start over with the present data"


class _Mark(NamedTuple):
    """A message: its offset, and when the server got it, in us of 1970."""

    offset: int
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


class NatsInputs(BufferedInput[_Mark]):
    """All messages of one stream, in its order; removed messages are holes.

    Reads by a consumer of its own without acknowledgements: if the connection is lost, or the
    consumer's own count has a gap, another one begins after the last message. Repetitions are
    recognized by their sequence. ``end`` is the latest known end.
    """

    def __init__(self, place: NatsUri, reading: Reading) -> None:
        """Take the stream; nothing is asked yet."""
        super().__init__(JsonValues(reading.shape), reading)
        self._place = place
        self._created = ""
        self._last_read: _Mark | None = None
        self._client: Client | None = None

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end. Raises InputError."""
        first, end = _range(await self._info())
        return {self.name: first}, {self.name: end}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the stream is the same, and still has the next messages."""
        known = _Identity.parse(identities.get(self.name, ""))
        offset = cut[self.name]
        self._created = known.created
        self._check(await self._info(), offset, known.created)
        if known.offset >= 0:
            last = _Mark(known.offset, known.got_us)
            await self._check_last(last)
            self.marks[offset] = last

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return when the stream that was read was made, and the last message before the cut."""
        found = _Identity(self._created)
        if (last := self.marks.get(cut[self.name])) is not None:
            found = found._replace(offset=last.offset, got_us=last.got_us)
        return {self.name: str(found)}

    async def _check_last(self, last: _Mark) -> None:
        """Raise InputError where another message has taken the place of a read one."""
        try:
            js = await self._stream()
            found = await js.get_msg(self._place.stream, last.offset + 1)
        except NotFoundError:
            return  # it was removed meanwhile, as streams do it
        except FAILURES as error:
            raise error_of(self._place, await left(self._client, error), InputAwayError) from error
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

    async def begin(self, offset: int) -> None:
        """See that the stream still has the next messages."""
        self._last_read = self.marks.get(offset)
        info = await self._info()
        self.end = self._check(info, offset, self._created)
        self._created = str(info.created)

    async def close(self) -> None:
        """Stop reading, and leave the server."""
        await super().close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _info(self) -> StreamInfo:
        try:
            info = await stream_info(await self._stream(), self._place)
        except FAILURES as error:
            raise error_of(self._place, await left(self._client, error), InputAwayError) from error
        if info is None:
            anew = f" any more: its records are lost. {ANEW}" if self._created else ""
            raise InputError(f"{self._place}: there is no such stream{anew}")
        check_kept(self._place, info)
        return info

    async def _stream(self) -> JetStreamContext:
        if self._client is None or self._client.is_closed:
            self._client = await connected(self._place, InputAwayError)
        return self._client.jetstream(timeout=ASK_S)

    async def error_of(self, error: Exception) -> Exception:
        """Return an error, with the server's reason; leave a server that does not answer."""
        return error_of(self._place, await left(self._client, error), InputAwayError)

    def is_away(self, error: Exception) -> bool:
        """Tell whether the server may answer soon."""
        return isinstance(error, (*FAILURES, InputAwayError))

    async def read(self) -> None:
        """Read by one consumer after another: each until it has a gap."""
        while True:
            await self._consume()

    async def _consume(self) -> None:
        js = await self._stream()
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.through + 1,
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
            self._check(await self._info(), self.through, self._created)
            if self._last_read is not None:
                await self._check_last(self._last_read)
            while True:
                await self.room()
                # Of what is not there yet the server would wait for all.
                count_there = min(fetch, max(1, (self.end or 0) - self.through))
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
                    if message.metadata.sequence.stream - 1 > self.through and not is_checked:
                        # Removed one by one, or has the stream overtaken its reader?
                        self._check(await self._info(), self.through, self._created)
                        is_checked = True
                    self._take(message)
                if self.through >= (self.end or 0):
                    await self._look(consumer, count)
                self.reading.wake()
        finally:
            with suppress(Exception):
                await consumer.unsubscribe()

    def _take(self, message: Msg) -> None:
        offset, value = message.metadata.sequence.stream - 1, message.data
        if offset < self.through:
            return
        self._last_read = _Mark(offset, _us(message.metadata.timestamp))
        try:
            self.hold(offset, value_of(value), self._last_read)
        except EnvelopeError as error:
            rejected = Rejected(offset, None, str(error), value[:RAW_BYTES_MAX])
            self.hold(offset, rejected, self._last_read)

    async def _look(self, consumer: JetStreamContext.PullSubscription, count: int) -> None:
        """See how far the stream is, and whether there is a hole at its end."""
        end = self._check(await self._info(), self.through, self._created)
        state = await consumer.consumer_info()
        delivered = state.delivered.consumer_seq if state.delivered is not None else 0
        if not state.num_pending and delivered == count:
            self.through = max(self.through, end)
        if self.follow or self.stop is not None:
            self.end = max(self.end or 0, end)
        self.reading.wake()


def _us(time: datetime) -> int:
    return round(time.timestamp() * 1_000_000)


def check_kept(place: NatsUri, info: StreamInfo) -> None:
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
