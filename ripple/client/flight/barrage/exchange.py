"""DoExchange streams: a client's requests, and its updates at its own interval."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from google.protobuf.message import DecodeError

from ripple.client.flight.barrage.batches import messages_of, schema_message
from ripple.client.flight.barrage.columns import check_known
from ripple.client.flight.barrage.messages import Asked, request_in
from ripple.client.flight.barrage.subscription import Subscription
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.messages.flight_pb2 import FlightData

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from ripple.client.flight.barrage.batches import Update
    from ripple.client.flight.barrage.feed import Feed, Feeds
    from ripple.client.flight.barrage.messages import Options
    from ripple.client.flight.barrage.session import Session, Sessions
    from ripple.world.ports import Clock

# The default interval of updates, and the shortest.
INTERVAL_S = 0.2
INTERVAL_S_MIN = 0.01
# Time limits for the first request, and for taking a message.
ASKED_S = 30.0
SEND_S = 60.0
# Memory held for slow clients, in total.
HELD_BYTES_MAX = 1 << 30
_LOOK_S = 5.0


class Stream(Protocol):
    """Messages from a client, and to it."""

    async def read(self) -> bytes | None:
        """Return the next message; None after the last."""

    async def write(self, message: bytes) -> None:
        """Send a message; return once there is room for another."""


class Held:
    """The memory held for all subscribers; above the limit, the next update waits."""

    def __init__(self, bytes_max: int = HELD_BYTES_MAX) -> None:
        self.nbytes = 0
        self._bytes_max = bytes_max
        self._turn = asyncio.Lock()
        self._less = asyncio.Event()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for room; the holder of the turn may allocate an update."""
        async with self._turn:
            while self.nbytes >= self._bytes_max:
                self._less.clear()
                await self._less.wait()
            yield

    def add(self, nbytes: int) -> None:
        """Add to the memory held, or subtract."""
        self.nbytes += nbytes
        if nbytes < 0:
            self._less.set()


class Exchanges:
    """Streams of all clients."""

    def __init__(
        self,
        feeds: Feeds,
        sessions: Sessions,
        clock: Clock,
        *,
        interval_s: float = INTERVAL_S,
        asked_s: float = ASKED_S,
        send_s: float = SEND_S,
        held: Held | None = None,
    ) -> None:
        """Create the service. interval_s: the default. asked_s, send_s: a client's time limits."""
        self._feeds = feeds
        self._sessions = sessions
        self._clock = clock
        self._interval_s = interval_s
        self._asked_s = asked_s
        self._send_s = send_s
        self._held = held or Held()

    async def serve(self, session: Session, stream: Stream) -> None:
        """Send a client its updates until it disconnects. Raises FlightError."""
        wishes = _Wishes(stream)
        try:
            first = await self._first(wishes)
            if first is None:
                return
            output = session.output(first.ticket)
            async with self._feeds.using(output) as feed, feed.waking(wishes.wake):
                await self._write(stream, [schema_message(feed.schema, first.options)])
                await self._send_updates(session, stream, wishes, first, feed)
        finally:
            wishes.end()

    async def _first(self, wishes: _Wishes) -> Asked | None:
        try:
            async with asyncio.timeout(self._asked_s):
                while (asked := wishes.take()) is None and not wishes.is_over:
                    await wishes.wait(None)
                return asked
        except TimeoutError:
            raise FlightError(Why.TOO_SLOW, f"no request within {self._asked_s:g} s") from None

    async def _send_updates(
        self, session: Session, stream: Stream, wishes: _Wishes, asked: Asked | None, feed: Feed
    ) -> None:
        known, due_ns = Subscription(), 0
        while True:
            if asked is not None:
                if session.output(asked.ticket) != feed.output:
                    raise FlightError(Why.WRONG, f"this stream is for {feed.output!r} alone")
                if not asked.options.as_text:
                    check_known(feed.schema, asked.columns)
                known.ask(asked, len(feed.schema))
            now_ns = self._clock.monotonic_ns()
            is_news = feed.rows.stamp != known.stamp
            if known.is_anew or (is_news and now_ns >= due_ns):
                interval_ns = self._interval_ns(known.asked)
                due_ns = (now_ns // interval_ns + 1) * interval_ns  # so that updates are shared
                await self._news(stream, known, feed)
                if known.asked.once:
                    return
            else:
                left_s = (due_ns - now_ns) / 1e9 if is_news else _LOOK_S
                await wishes.wait(min(left_s, _LOOK_S))
            feed.check()
            asked = wishes.take()
            if asked is None and wishes.is_over:
                return
            if self._sessions.is_over(session):
                raise FlightError(Why.STRANGER, "the session has expired")

    async def _news(self, stream: Stream, known: Subscription, feed: Feed) -> None:
        options = known.asked.options._replace(interval_ms=0)
        async with self._held.turn():
            update = known.news(feed.rows, feed.shared)
            nbytes = 0 if update is None else update.nbytes
            self._held.add(nbytes)
        try:
            if update is not None:
                await self._write(stream, _messages(update, options, feed))
        finally:
            del update
            self._held.add(-nbytes)

    async def _write(self, stream: Stream, messages: Iterable[bytes]) -> None:
        for message in messages:
            try:
                async with asyncio.timeout(self._send_s):
                    await stream.write(message)
            except TimeoutError:
                raise FlightError(
                    Why.TOO_SLOW, f"a message was not taken within {self._send_s:g} s"
                ) from None

    def _interval_ns(self, asked: Asked) -> int:
        wanted_s = asked.options.interval_ms / 1e3
        return int(max(wanted_s if wanted_s > 0 else self._interval_s, INTERVAL_S_MIN) * 1e9)


class _Wishes:
    """The requests of a client: only the newest counts."""

    def __init__(self, stream: Stream) -> None:
        self.wake = asyncio.Event()
        self._stream = stream
        self._newest: Asked | None = None
        self._failed: Exception | None = None
        self._reading = asyncio.create_task(self._read())

    @property
    def is_over(self) -> bool:
        """Whether the client has sent its last message."""
        return self._reading.done()

    def take(self) -> Asked | None:
        """Return the newest request. Raises FlightError for an invalid one."""
        if self._failed is not None:
            raise self._failed
        asked, self._newest = self._newest, None
        return asked

    async def wait(self, timeout_s: float | None) -> None:
        """Wait for a request, or a change of the table."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.wake.wait()
        self.wake.clear()

    def end(self) -> None:
        """Stop reading."""
        self._reading.cancel()

    async def _read(self) -> None:
        try:
            while (message := await self._stream.read()) is not None:
                about = FlightData.FromString(message).app_metadata
                if about:  # some clients begin with an empty message that has only a descriptor
                    self._newest = request_in(about)
                    self.wake.set()
        except DecodeError as error:
            self._failed = FlightError(Why.WRONG, f"this is not a FlightData: {error}")
        except Exception as error:
            self._failed = error
        finally:
            self.wake.set()


def _messages(update: Update, options: Options, feed: Feed) -> Iterable[bytes]:
    """Return an update's messages; those of a shared update are built once."""
    if not any(update is one for one in feed.shared.values()):
        return messages_of(update, options)
    if options not in update.messages:
        update.messages[options] = list(messages_of(update, options))
    return update.messages[options]
