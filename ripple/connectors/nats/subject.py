"""A plain subject of NATS as a feed: each message once, from the subscription on."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.connectors.background import Background
from ripple.connectors.formats.held import Held
from ripple.connectors.nats.envelope import EnvelopeError, value_of
from ripple.connectors.nats.session import FAILURES, connected, error_of
from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.world.pauses import DELAYS_S

with needed("nats", "a subject of NATS"):
    from nats.errors import SlowConsumerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from ripple.connectors.formats.contract import Values
    from ripple.connectors.nats.uri import NatsUri
    from ripple.model.batch import Batch

LOST = "the connection was lost, and with it the messages meanwhile"
SLOW = "messages came more quickly than they were taken, and are lost"
WAIT_S = 0.05
AHEAD_MESSAGES_MAX = 10_000
AHEAD_BYTES_MAX = 4 << 20


class SubjectSource:
    """Reads a subject until it is closed, or silent for ``quiet_s``; see Source.

    Messages are not stored, so those before the subscription never come: offsets count the messages
    that this run has taken. A known gap, because the connection was made anew or more came than was
    taken, is a rejected record that says so; its size is unknown.

    Invariants: it holds no more than a batch, and the client's read-ahead buffer, which is bounded.
    """

    def __init__(
        self, place: NatsUri, values: Values, *, name: str, batch_rows: int, quiet_s: float | None
    ) -> None:
        self.name = name
        self._place, self._values, self._batch_rows = place, values, batch_rows
        self._quiet_s = quiet_s
        self._messages: deque[bytes] = deque()
        self._there, self._room = asyncio.Event(), asyncio.Event()
        self._missing: list[str] = []
        self._client: Client | None = None
        self._made = 0  # connections, by the client and by us
        self._loop: Background | None = None
        self._is_read = self._is_closed = False

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records, once; see Source."""
        if self._is_read:
            raise InputError(f"{self._place} can be read once: record it with ripple log append")
        self._is_read = True
        self._loop = Background()
        held, quiet_s = Held(from_offset), 0.0
        while not self._is_closed:
            room = self._batch_rows - held.end % self._batch_rows
            found = self._loop.call(self._some(room))
            for one in found:
                _take(one, held)
            while self._missing:
                held.refuse(self._missing.pop(0), b"")
            quiet_s = 0.0 if found else quiet_s + WAIT_S
            if held.end > held.start and (not found or held.end % self._batch_rows == 0):
                yield held.batch(self._values)
                held.clear()
            if self._quiet_s is not None and quiet_s >= self._quiet_s:
                break
        self.close()

    def close(self) -> None:
        """Leave the server; see Source."""
        self._is_closed = True
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.call(self._leave())
            finally:
                loop.close()

    async def _some(self, count: int) -> list[bytes]:
        """Return the received messages, at most so many; none after a while. Raises InputError."""
        if self._client is None or self._client.is_closed:
            await self._listen()
        if not self._messages:
            self._there.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    await self._there.wait()
        found = [self._messages.popleft() for _ in range(min(count, len(self._messages)))]
        self._room.set()
        made = self._client.stats["reconnects"] if self._client is not None else 0
        if made > self._made:
            self._made = made
            self._missing.append(LOST)
        return found

    async def _listen(self) -> None:
        is_first, delays = self._client is None, iter(DELAYS_S)
        while True:
            try:
                client = await connected(self._place, InputError, hear=self._hear)
                break
            except InputError:
                delay_s = None if is_first else next(delays, None)
                if delay_s is None:
                    raise
                await asyncio.sleep(delay_s)
        if not is_first:
            self._missing.append(LOST)
        self._client, self._made = client, 0
        try:
            await client.subscribe(
                self._place.stream,
                cb=self._come,
                pending_msgs_limit=AHEAD_MESSAGES_MAX,
                pending_bytes_limit=AHEAD_BYTES_MAX,
            )
            await client.flush()
        except FAILURES as error:
            raise error_of(self._place, error, InputError) from error

    async def _come(self, message: Msg) -> None:
        while len(self._messages) >= self._batch_rows:
            self._room.clear()
            await self._room.wait()
        self._messages.append(message.data)
        self._there.set()

    def _hear(self, error: Exception) -> None:
        if isinstance(error, SlowConsumerError) and SLOW not in self._missing:
            self._missing.append(SLOW)

    async def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _take(data: bytes, held: Held) -> None:
    try:
        held.add(value_of(data))
    except EnvelopeError as error:
        held.refuse(str(error), data)
